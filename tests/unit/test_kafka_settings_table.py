"""The guide's table of Kafka's settings is the code's, both ways."""

from __future__ import annotations

import re
from pathlib import Path

from duolog.bridge.kafka.setting_names import (
    ALSO_NAMED,
    CONNECTION,
    MECHANISMS,
    MIRROR,
    PROTOCOLS,
    SECRETS,
    TOPIC_PREFIX,
    canonical,
)

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "kafka.md"


def rows() -> dict[str, str]:
    """Name of a setting -> what the guide says of it."""
    _, _, section = GUIDE.read_text().partition("\n## Settings\n")
    found: dict[str, str] = {}
    for names, said in re.findall(r"^\| (`.*?) \| (.*) \|$|^\| .*? \| \|$", section, re.MULTILINE):
        for name in re.findall(r"`([^`]+)`", names):
            assert name not in found, f"{name} has two rows"
            found[name] = said
    return found


def test_every_setting_has_a_row_and_every_row_is_a_setting() -> None:
    known = {*CONNECTION, *MIRROR, *ALSO_NAMED, f"{TOPIC_PREFIX}NAME"}
    assert set(rows()) == known


def test_the_rows_say_what_may_be_given() -> None:
    told = rows()
    assert all(f"`{word}`" in told["security.protocol"] for word in PROTOCOLS)
    assert all(f"`{word}`" in told["sasl.mechanism"] for word in MECHANISMS)
    for name in ("request.timeout.ms", "socket.connection.setup.timeout.ms"):
        assert CONNECTION[name] in told[name]
    assert [
        name for name in told if canonical(name) in SECRETS and "secret" not in told[name]
    ] == []
