"""Which names and numbers are allowed."""

from __future__ import annotations

import re

from duolog.errors import InvalidName, InvalidRequest, InvalidSetting
from duolog.log.model import Envelope, Format, Mode, Retention, TopicSettings, Writer

# As Kafka has it, so that every topic can be mirrored under its own name.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LONGEST_NAME = 255
MAX_PARTITIONS = 65_536
LONGEST_SECONDS = 10**12
"""Of retention and deduplication: 30,000 years, which every computation with times can hold."""
MOST_BYTES = 2**63 - 1
_LAST_EPOCH = 2**63 - 1


def check_topic_name(name: object, what: str = "topic") -> str:
    """Return the name of a topic, an alias or a Kafka topic, or say what is wrong with it."""
    if not isinstance(name, str) or not name:
        raise InvalidName(f"A {what} needs a name; got {name!r}.")
    if name in {".", ".."} or not _TOPIC.fullmatch(name):
        raise InvalidName(
            f"'{_shown(name)}' cannot name a {what}: use 1 to 249 of the characters "
            "A-Z a-z 0-9 . _ - (not '.' or '..' alone)."
        )
    return name


def check_text_name(name: object, what: str) -> str:
    """Return the name of a group, a table or a writer, or say what is wrong with it."""
    if not isinstance(name, str) or not name:
        raise InvalidName(f"A {what} needs a name; got {name!r}.")
    length = len(check_unicode(name, f"{what} name").encode())
    if length > _LONGEST_NAME or any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        raise InvalidName(
            f"'{_shown(name)}' cannot name a {what}: use at most {_LONGEST_NAME} bytes, "
            "no control characters."
        )
    return name


def check_unicode(text: object, what: str) -> str:
    """Return a text that can be stored and given back, or say what is wrong with it."""
    if not isinstance(text, str):
        raise InvalidName(f"A {what} must be text; got {type(text).__name__}.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidName(
            f"A {what} must be valid UTF-8; {text[error.start : error.end]!a} at character "
            f"{error.start} is half of a surrogate pair."
        ) from None
    return text


def check_writer(writer: Writer) -> Writer:
    """Return who appends epochs, or say what is wrong with its names."""
    if not isinstance(writer, Writer) or not isinstance(writer.mode, Mode):
        raise InvalidName(f"A writer is made with Writer(Mode.…, …); got {writer!a}.")
    check_text_name(writer.name, "writer")
    check_text_name(writer.target, "writer's target")
    return writer


def check_epoch(epoch: object) -> None:
    """Refuse what is no epoch's number."""
    if isinstance(epoch, bool) or not isinstance(epoch, int) or not 0 <= epoch <= _LAST_EPOCH:
        raise InvalidRequest(f"An epoch must be a whole number from 0; got {shown_number(epoch)}.")


def check_partitions(partitions: object) -> int:
    """Return a topic's number of partitions, or say what is wrong with it."""
    if not _is_whole(partitions) or not 1 <= partitions <= MAX_PARTITIONS:  # type: ignore[operator]
        raise InvalidSetting(
            f"partitions must be 1 to {MAX_PARTITIONS}; got {shown_number(partitions)}."
        )
    return partitions  # type: ignore[return-value]


def check_settings(settings: TopicSettings) -> TopicSettings:
    """Return a topic's settings, or say what is wrong with them."""
    check_partitions(settings.partitions)
    _check_kinds(settings)
    if settings.alias is not None:
        check_topic_name(settings.alias, "topic alias")
    if settings.kafka_topic is not None:
        check_topic_name(settings.kafka_topic, "Kafka topic")
    seconds = settings.retention.seconds
    if seconds is not None and not 0 < seconds <= LONGEST_SECONDS:
        raise InvalidSetting(
            f"retention_seconds must be above 0 and at most {LONGEST_SECONDS:,}; got "
            f"{shown_number(seconds)}. Leave it out to keep records for ever."
        )
    max_bytes = settings.retention.max_bytes
    if max_bytes is not None and (not _is_whole(max_bytes) or not 0 < max_bytes <= MOST_BYTES):
        raise InvalidSetting(
            f"retention_max_bytes must be a whole number above 0 and at most {MOST_BYTES:,}; got "
            f"{shown_number(max_bytes)}. Leave it out for no limit."
        )
    window = settings.dedup_window_seconds
    if window is not None and not 0 < window <= LONGEST_SECONDS:
        raise InvalidSetting(
            f"dedup_window_seconds must be above 0 and at most {LONGEST_SECONDS:,}; got "
            f"{shown_number(window)}."
        )
    return settings


def _check_kinds(settings: TopicSettings) -> None:
    """What is stored has to be read again, also by those who open the log later."""
    kinds = {
        "retention": Retention,
        "key_format": Format,
        "value_format": Format,
        "envelope": Envelope,
        "tombstones_on_delete": bool,
        "json_int64_as_string": bool,
    }
    for name, kind in kinds.items():
        if type(getattr(settings, name)) is not kind:
            raise InvalidSetting(f"{name} is a {kind.__name__}; got {getattr(settings, name)!a}.")
    if type(settings.retention.waits_for_mirror) is not bool:
        raise InvalidSetting(
            f"waits_for_mirror is a bool; got {settings.retention.waits_for_mirror!a}."
        )
    for name, seconds in (
        ("retention_seconds", settings.retention.seconds),
        ("dedup_window_seconds", settings.dedup_window_seconds),
    ):
        if seconds is not None and type(seconds) not in (int, float):
            raise InvalidSetting(f"{name} must be a number above 0; got {seconds!a}.")


def shown_number(value: object) -> str:
    """A number as a message shows it; Python refuses to write out very long ones."""
    if isinstance(value, int) and value.bit_length() > 80:
        return f"one of {value.bit_length()} bits"
    return repr(value)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(name: str) -> str:
    shown = name if len(name) <= 60 else f"{name[:57]}..."
    return shown.encode(errors="backslashreplace").decode()  # a message can always be written
