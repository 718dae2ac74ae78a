"""The sink's options, as users of Spark write them: text, in any case.

The data source's writer takes them along to tasks, so what knows the registry's options is imported
where it is used.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from duolog.connector.bad_rows import BadRecords
from duolog.connector.table_rows import Unrouted
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from duolog.reach import RemoteOptions

W = TypeVar("W", bound=StrEnum)
DEFAULT_SMALL_BATCH_ROWS = 10_000
TOKEN_VARIABLE = "DUOLOG_TOKEN"  # noqa: S105 - where a token may be, not one


@dataclass(frozen=True, slots=True)
class SinkOption:
    """One option, for messages and documents."""

    name: str
    meaning: str
    default: str = ""


SINK_OPTIONS = (
    SinkOption("path", "the log's folder, which is there already", "this or `url`"),
    SinkOption("url", "where the log's host is asked, as in `https://bridge.example:8443`"),
    SinkOption("token", "with `url`: what the host lets in", "the variable `DUOLOG_TOKEN`"),
    SinkOption(
        "allowPlainHttp",
        "with `url`: `true` sends the token over a network without TLS",
        "false",
    ),
    SinkOption(
        "caPath", "with `url`: a PEM file of who vouches for the host", "the usual authorities"
    ),
    SinkOption(
        "topic",
        "write rows with `key` and `value` columns to this topic (name or alias)",
        "each row's column `topic`",
    ),
    SinkOption("table", "the rows are those of this table, and its routes say which topics"),
    SinkOption("keyColumns", "the table's key columns, comma between", "no key"),
    SinkOption(
        "changes",
        "with `table`: what the rows are, `append`, `read`, `delta`, `iceberg` or `debezium`",
        "found from the columns",
    ),
    SinkOption(
        "rowColumns",
        "with `changes=debezium` and JSON in `value`: the row's columns, as in "
        "`id BIGINT, note STRING`",
    ),
    SinkOption(
        "unrouted", "with `table`: `fail` on changes that no route takes, or `drop` them", "fail"
    ),
    SinkOption(
        "sequenceBy",
        "`write_stream` and `write_batch`: the columns that say in which order the rows of a key "
        "come, comma between",
        "no order between tasks",
    ),
    SinkOption(
        "badRecords",
        "`fail` on rows that cannot be written, or put them into the topic `dlqTopic`",
        "fail",
    ),
    SinkOption(
        "dlqTopic",
        "with `badRecords=dlq`: the topic for such rows; made where it is missing",
        "the target's name and `-dlq`",
    ),
    SinkOption("queryName", "the name of a stream, as Spark has it"),
    SinkOption("txnAppId", "who writes: in a batch job, and for a stream in place of `queryName`"),
    SinkOption("txnVersion", "the number of this batch write, higher each time"),
    SinkOption(
        "beginAnywhere",
        "`true`: a stream that this log does not know may begin with a later batch than 0",
        "false",
    ),
    SinkOption(
        "smallBatchRows",
        "`write_stream` and `write_batch`: after a batch of at most so many rows, the next one "
        "is encoded on the driver",
        str(DEFAULT_SMALL_BATCH_ROWS),
    ),
)
_BY_NAME = {option.name.lower(): option.name for option in SINK_OPTIONS}
_SPARKS_OWN = frozenset({"checkpointlocation"})
_ONLY_FOR_URLS = ("token", "allowPlainHttp", "caPath")
_ONLY_FOR_TABLES = ("keyColumns", "changes", "rowColumns", "unrouted")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the options say. Picklable."""

    path: str | None = None
    topic: str | None = None
    table: str | None = None
    key_columns: tuple[str, ...] = ()
    changes: str | None = None
    row_columns: str | None = None
    unrouted: Unrouted = Unrouted.FAIL
    sequence_by: tuple[str, ...] = ()
    bad_records: BadRecords = BadRecords.FAIL
    dlq_topic: str | None = None
    query_name: str | None = None
    app_id: str | None = None
    version: int | None = None
    begin_anywhere: bool = False
    small_batch_rows: int = DEFAULT_SMALL_BATCH_ROWS
    url: str | None = None
    token: str | None = field(default=None, repr=False)
    allow_plain_http: bool = False
    ca_path: str | None = None
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    @classmethod
    def of(cls, given: Mapping[str, object]) -> SinkOptions:
        """The options, or InvalidSetting for a name or a value that is not right."""
        known, registry = _sorted_out(given)
        _check_place(known)
        _check_together(known)
        return cls(
            path=known.get("path"),
            url=known.get("url"),
            token=_token(known),
            allow_plain_http=_flag("allowPlainHttp", known.get("allowPlainHttp", "false")),
            ca_path=known.get("caPath"),
            topic=known.get("topic"),
            table=known.get("table"),
            key_columns=_names("keyColumns", known.get("keyColumns", "")),
            changes=known.get("changes"),
            row_columns=known.get("rowColumns"),
            unrouted=_word("unrouted", known.get("unrouted", "fail"), Unrouted),
            sequence_by=_names("sequenceBy", known.get("sequenceBy", "")),
            bad_records=_word("badRecords", known.get("badRecords", "fail"), BadRecords),
            dlq_topic=known.get("dlqTopic"),
            query_name=known.get("queryName"),
            app_id=known.get("txnAppId"),
            version=_whole("txnVersion", known["txnVersion"]) if "txnVersion" in known else None,
            begin_anywhere=_flag("beginAnywhere", known.get("beginAnywhere", "false")),
            small_batch_rows=_whole(
                "smallBatchRows", known.get("smallBatchRows", str(DEFAULT_SMALL_BATCH_ROWS))
            ),
            registry=registry,
        )

    @property
    def remote(self) -> RemoteOptions:
        """How a host is asked."""
        from duolog.reach import RemoteOptions

        return RemoteOptions(allow_plain_http=self.allow_plain_http, ca_path=self.ca_path)

    def planned(self) -> SinkOptions:
        """Without what only planning needs: passwords of a registry stay on the driver."""
        return replace(self, registry={})


def _sorted_out(given: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Ours by their right names, and the registry's."""
    from duolog.avro.registry.options import RegistryOptions, is_registry_option

    known: dict[str, str] = {}
    registry: dict[str, str] = {}
    for name, value in given.items():
        ours = _BY_NAME.get(name.lower())
        if ours is not None:
            if ours in known:
                raise InvalidSetting(f"Option '{ours}' is given twice. Give it once.")
            known[ours] = _text(ours, value)
        elif is_registry_option(name):
            registry[name] = _text(name, value)
        elif name.lower() not in _SPARKS_OWN:
            raise InvalidSetting(f"There is no option '{name}'. {_hint(name)}")
    RegistryOptions.of(registry)
    return known, registry


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name.lower().replace("_", ""), _BY_NAME, n=1)
    if near:
        return f"Did you mean '{_BY_NAME[near[0]]}'?"
    return f"There are {', '.join(option.name for option in SINK_OPTIONS)}, and a registry's."


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    text = str(value).strip() if isinstance(value, str | int) else ""
    if not text:
        shown = "of no use" if name == "token" else repr(value)
        raise InvalidSetting(f"Option '{name}' is {shown}. Give it a value, or leave it out.")
    return text


def _check_place(known: Mapping[str, str]) -> None:
    if ("path" in known) == ("url" in known):
        raise InvalidSetting(
            "Say where the log is: option 'path' names its folder, or 'url' its host. Give one of "
            "them."
        )
    for name in _ONLY_FOR_URLS:
        if name in known and "url" not in known:
            raise InvalidSetting(f"Option '{name}' belongs to 'url'; a path needs none.")


def _token(known: Mapping[str, str]) -> str | None:
    if "url" not in known:
        return None
    return known.get("token") or os.environ.get(TOKEN_VARIABLE) or None


def _check_together(known: Mapping[str, str]) -> None:
    if "topic" in known and "table" in known:
        raise InvalidSetting(
            "Options 'topic' and 'table' exclude each other: give 'topic' for rows with key and "
            "value columns, 'table' for rows that the table's routes turn into records."
        )
    for name in _ONLY_FOR_TABLES:
        if name in known and "table" not in known:
            raise InvalidSetting(f"Option '{name}' is for rows of a table. Give 'table' too.")
    if "dlqTopic" in known and known.get("badRecords", "").lower() != BadRecords.DLQ:
        raise InvalidSetting("Option 'dlqTopic' names the topic for badRecords=dlq. Give that too.")


def _names(name: str, text: str) -> tuple[str, ...]:
    names = tuple(column.strip() for column in text.split(",")) if text else ()
    if not all(names):
        raise InvalidSetting(f"Option '{name}' is '{text}'. Name columns, comma between.")
    return names


def _word(name: str, word: str, words: type[W]) -> W:
    try:
        return words(word.lower())
    except ValueError:
        raise InvalidSetting(
            f"Option '{name}' must be {' or '.join(words)}; got '{word}'."
        ) from None


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidSetting(f"Option '{name}' must be a whole number from 0; got '{text}'.")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise InvalidSetting(f"Option '{name}' must be true or false; got '{text}'.")
    return text.lower() == "true"
