"""A local broker that wants TLS or a login, and the settings to come in."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

if TYPE_CHECKING:
    from duolog.bridge.kafka.local import LocalKafka, Security

FILE_NAME: Final = "duolog.toml"
_USER: Final = "duolog"


def security_of(protocol: str) -> Security:
    """One door beside the plain listener, and one user with a password made up now."""
    from duolog.bridge.kafka.local import Door, Security

    return Security((Door(protocol),), users={_USER: SecretStr(secrets.token_urlsafe(24))})


def write_settings(broker: LocalKafka, protocol: str) -> Path:
    """What clients need, as the table [kafka] of a settings file, for its owner alone."""
    told = {"bootstrap.servers": broker.address_of(protocol), "security.protocol": protocol}
    if protocol.endswith("SSL"):
        told["ssl.ca.location"] = str(broker.authority.certificate_file)
    if protocol.startswith("SASL_"):
        password = broker.security.users[_USER].get_secret_value()
        told |= {"sasl.mechanism": "PLAIN", "sasl.username": _USER, "sasl.password": password}
    file = broker.folder / FILE_NAME
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    # A text of JSON is one of TOML.
    lines = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in told.items()]
    file.write_text("\n".join(["[kafka]", *lines, ""]), encoding="utf-8")
    return file
