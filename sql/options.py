"""What stands in WITH (name = value, …)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from duolog.log.model import Envelope, Format, PayloadMode, TopicSettings
from duolog.sql.reader import either, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duolog.errors import InvalidSql
    from duolog.sql.reader import Reader
    from duolog.sql.words import Word

Value: TypeAlias = str | int | float | bool | None
Choice = TypeVar("Choice", bound=StrEnum)
Chosen = TypeVar("Chosen")

TOPIC_OPTIONS = (
    "retention_seconds",
    "retention_max_bytes",
    "retention_waits_for_mirror",
    "key_format",
    "value_format",
    "envelope",
    "tombstones_on_delete",
    "kafka_topic",
    "dedup_window_seconds",
    "json_int64_as_string",
)
RETENTION_OPTIONS = ("retention_seconds", "retention_max_bytes", "retention_waits_for_mirror")
_LARGEST = 1e300
_CONSTANTS: dict[str, Value] = {"NULL": None, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Option:
    """One option, and where its value stands."""

    name: str
    value: Value
    word: Word


def read_options(reader: Reader, known: Iterable[str]) -> dict[str, Option]:
    """The options in parentheses; the reader stands behind WITH."""
    names = list(known)
    found: dict[str, Option] = {}
    reader.expect("(")
    for _ in reader.commas():
        word = reader.take()
        name = word.text.lower()
        if word.kind not in ("name", "quoted"):
            raise reader.error(word, f"Expected the name of an option here, found {shown(word)}.")
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"Did you mean `{near[0]}`?" if near else f"There is: {', '.join(names)}."
            raise reader.error(word, f"There is no option `{word.text}` here. {hint}")
        if name in found:
            raise reader.error(word, f"`{name}` is here twice.")
        reader.expect("=")
        found[name] = Option(name, *_value(reader))
    reader.expect(")")
    return found


def _value(reader: Reader) -> tuple[Value, Word]:
    word = reader.take()
    if word.kind == "text":
        return word.text, word
    if word.keyword in _CONSTANTS:
        return _CONSTANTS[word.keyword], word
    sign = 1
    if word.keyword == "-":
        sign, word = -1, reader.take()
    if word.kind != "number":
        raise reader.error(
            word, f"Expected a number, a text in quotes, TRUE, FALSE or NULL, found {shown(word)}."
        )
    number = int(word.text) if word.text.isdigit() else float(word.text)
    if number > _LARGEST:
        raise reader.error(word, "This number is too large.")
    return sign * number, word


def topic_settings(
    reader: Reader, settings: TopicSettings, options: dict[str, Option]
) -> TopicSettings:
    """Settings with what the options say. Whether a number makes sense is the log's to say."""
    for option in options.values():
        match option.name:
            case "retention_seconds":
                retention = replace(settings.retention, seconds=number_of(reader, option))
                settings = replace(settings, retention=retention)
            case "retention_max_bytes":
                retention = replace(settings.retention, max_bytes=whole_of(reader, option))
                settings = replace(settings, retention=retention)
            case "retention_waits_for_mirror":
                waits = truth_of(reader, option)
                retention = replace(settings.retention, waits_for_mirror=waits)
                settings = replace(settings, retention=retention)
            case "key_format":
                settings = replace(settings, key_format=_choice(reader, option, Format))
            case "value_format":
                settings = replace(settings, value_format=_choice(reader, option, Format))
            case "envelope":
                settings = replace(settings, envelope=_choice(reader, option, Envelope))
            case "tombstones_on_delete":
                settings = replace(settings, tombstones_on_delete=truth_of(reader, option))
            case "kafka_topic":
                settings = replace(settings, kafka_topic=_text(reader, option))
            case "dedup_window_seconds":
                settings = replace(settings, dedup_window_seconds=number_of(reader, option))
            case "json_int64_as_string":
                settings = replace(settings, json_int64_as_string=truth_of(reader, option))
    return settings


def number_of(reader: Reader, option: Option) -> float | None:
    if option.value is None:
        return None
    if isinstance(option.value, bool | str):
        raise _wrong(reader, option, "a number, or NULL for none")
    return option.value


def whole_of(reader: Reader, option: Option) -> int | None:
    if option.value is None:
        return None
    if isinstance(option.value, bool) or not isinstance(option.value, int):
        raise _wrong(reader, option, "a whole number, or NULL for none")
    return option.value


def payload_of(reader: Reader, option: Option) -> PayloadMode:
    return _one_of(reader, option, {mode.word: mode for mode in PayloadMode if mode.word})


def _choice(reader: Reader, option: Option, kind: type[Choice]) -> Choice:
    return _one_of(reader, option, {each.value: each for each in kind})


def _one_of(reader: Reader, option: Option, known: dict[str, Chosen]) -> Chosen:
    word = option.value.lower() if isinstance(option.value, str) else ""
    if word not in known:
        raise _wrong(reader, option, either([f"'{each}'" for each in known]))
    return known[word]


def _text(reader: Reader, option: Option) -> str | None:
    if option.value is not None and not isinstance(option.value, str):
        raise _wrong(reader, option, "a text in quotes, or NULL for none")
    return option.value


def truth_of(reader: Reader, option: Option) -> bool:
    if not isinstance(option.value, bool):
        raise _wrong(reader, option, "TRUE or FALSE")
    return option.value


def _wrong(reader: Reader, option: Option, wanted: str) -> InvalidSql:
    return reader.error(option.word, f"`{option.name}` is {wanted}.")
