"""What a process that runs a query may ask of its host: reads, as the query's sender may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import UUID

from duolog.bridge.internal.dispatch import Dispatch
from duolog.bridge.sql.frames import Kind, framed
from duolog.errors import DuologError, InvalidRequest
from duolog.reach.calls import CALLS
from duolog.reach.failures import failure_of
from duolog.reach.wire import to_wire

if TYPE_CHECKING:
    from duolog.avro.registry.port import SchemaSource
    from duolog.bridge.sql.seen_log import SeenLog

READING: Final = frozenset(
    {
        *("topic", "topics", "offsets", "all_offsets", "resolve", "record_times"),
        "group_positions",
        "group_members",
        *("look_for_damage", "damage", "holes"),
        *("mirrors", "mirror_modes", "mirror_reports"),
    }
)
"""Of the calls of other Duolog processes."""


class Answering:
    """Answers the calls of one query. Blocks: runs in threads."""

    def __init__(self, log: SeenLog, registry: Callable[[], SchemaSource]) -> None:
        self._dispatch = Dispatch(cast("Any", log), cast("Any", None))
        self._registry = registry

    def frame(self, asked: Mapping[str, Any]) -> bytes:
        """The answer to one call, also when it is an error."""
        try:
            call, arguments = asked["call"], asked["arguments"]
            if call == "fetch":
                return framed(Kind.BATCHES, self._dispatch.fetch(arguments))
            return framed(Kind.RESULT, self._result(call, arguments))
        except DuologError as error:
            return framed(Kind.REFUSED, failure_of(error))

    def _result(self, call: str, arguments: Mapping[str, Any]) -> Any:
        match call:
            case "schema_by_id":
                return to_wire(self._registry().schema_by_id(arguments["schema_id"]))
            case "schema_by_guid":
                return to_wire(self._registry().schema_by_guid(UUID(arguments["guid"])))
            case "schema_version":
                wanted = arguments["subject"], arguments["version"]
                return to_wire(self._registry().version(*wanted))
        if call not in READING:
            raise InvalidRequest(f"A query does not ask for '{call}'.")
        return self._dispatch.run(CALLS[call], arguments)
