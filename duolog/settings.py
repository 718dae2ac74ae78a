"""Settings: duolog.toml in the current folder, then DUOLOG_* variables, then flags; later ones win.

    log = "orders.log"              DUOLOG_LOG              --log
    cache_bytes = "256 MiB"         DUOLOG_CACHE_BYTES
    lock_wait_seconds = 2           DUOLOG_LOCK_WAIT_SECONDS

    [avro]                          DUOLOG_AVRO (JSON)
    "schema.registry.url" = "…"     as Confluent's serializers call their options

Sizes are numbers of bytes or words like "64 MiB".
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ByteSize, FiniteFloat, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from duolog.errors import InvalidSetting
from duolog.log.options import LogOptions

FILE_NAME = "duolog.toml"
_PREFIX = "DUOLOG_"
_DEFAULTS = LogOptions()


class Settings(BaseSettings):
    """What holds for one run of the program. Made by `load_settings`."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, env_ignore_empty=True, extra="forbid", frozen=True
    )

    log: str | None = None  # the log's directory; text, so that an address is refused as typed
    max_record_bytes: ByteSize = ByteSize(_DEFAULTS.max_record_bytes)
    max_fetch_records: int = _DEFAULTS.max_fetch_records
    cache_bytes: ByteSize = ByteSize(_DEFAULTS.cache_bytes)
    min_free_bytes: ByteSize = ByteSize(_DEFAULTS.min_free_bytes)
    lock_wait_seconds: FiniteFloat = _DEFAULTS.lock_wait_seconds
    avro: dict[str, SecretStr] = {}  # some of them are passwords

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        in_file = InitSettingsSource(settings_cls, _read_file(Path(FILE_NAME)))
        return init_settings, env_settings, in_file

    def avro_options(self) -> dict[str, str]:
        """The options that Confluent's serializers know."""
        return {name: value.get_secret_value() for name, value in self.avro.items()}

    def log_options(self) -> LogOptions:
        """How to open a log. Raises InvalidSetting for numbers that no log runs with."""
        return LogOptions(
            max_record_bytes=int(self.max_record_bytes),
            max_fetch_records=self.max_fetch_records,
            cache_bytes=int(self.cache_bytes),
            min_free_bytes=int(self.min_free_bytes),
            lock_wait_seconds=self.lock_wait_seconds,
        )


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings in force. Flags that are None were not given."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    try:
        settings = Settings(**given)
    except ValidationError as error:
        raise InvalidSetting(_told(error, given)) from None
    settings.log_options()
    return settings


def _read_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise InvalidSetting(f"{path} is not valid TOML: {error}.") from error
    known = list(Settings.model_fields)
    for name in found:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0)
            raise InvalidSetting(
                f"{path} has an unknown key '{name}'. The nearest known one is '{near[0]}'; all "
                f"are: {', '.join(known)}."
            )
    return found


def _told(error: ValidationError, flags: Mapping[str, Any]) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0])
    if name in flags:
        source = "--" + name.replace("_", "-")
    elif any(variable.upper() == _PREFIX + name.upper() for variable in os.environ):
        source = _PREFIX + name.upper()
    else:
        source = f"'{name}' in {FILE_NAME}"
    reason = str(first["msg"])
    return f"{source} cannot be {first['input']!r}: {reason[0].lower()}{reason[1:].rstrip('.')}."
