"""From a call on the wire to the log and back. Blocks: runs in threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from duolog.bridge.internal.parts import StagedUploads
from duolog.errors import InvalidRequest
from duolog.log.fetched import FetchedEncoded
from duolog.reach import calls
from duolog.reach.calls import Call
from duolog.reach.frames import to_frames
from duolog.reach.rows import rows_before_from_bytes, rows_from_bytes
from duolog.reach.wire import from_wire, to_wire

if TYPE_CHECKING:
    from duolog.bridge.groups import HostGroups
    from duolog.log.embedded import EmbeddedLog

_MAX_FETCH_BYTES: Final = 64 << 20  # at once; who wants more reads on
_ON_BOTH_SIDES: Final = (calls.SEEK, calls.SETTLE_GROUP, calls.DELETE_GROUP)


class Dispatch:
    """Does with a log what the table of calls allows, and nothing else."""

    def __init__(
        self, log: EmbeddedLog, uploads: StagedUploads, groups: HostGroups | None = None
    ) -> None:
        self._log = log
        self._groups = groups or log
        self._uploads = uploads

    def run(self, call: Call[Any], sent: Mapping[str, Any]) -> Any:
        """One call's answer, as JSON has it."""
        strange = sent.keys() - call.parameters.keys()
        missing = call.parameters.keys() - sent.keys() - call.optional
        if strange or missing:
            raise InvalidRequest(
                f"'{call.name}' takes {', '.join(call.parameters) or 'nothing'}; "
                f"{', '.join(map(repr, sorted(strange | missing)))} is too much or missing. Use "
                "the same Duolog on both sides."
            )
        arguments = {name: from_wire(call.parameters[name], value) for name, value in sent.items()}
        if call is calls.APPEND:
            arguments["parts"] = self._parts(arguments)
        if call is calls.PUBLISH_ROWS:
            table, before = arguments["table"], arguments["before"]
            arguments["rows"] = rows_from_bytes(table, arguments["rows"])
            arguments["before"] = rows_before_from_bytes(table, before)
        member = getattr(self._groups if call in _ON_BOTH_SIDES else self._log, call.name)
        return to_wire(member(**arguments) if callable(member) else member)

    def _parts(self, arguments: Mapping[str, Any]) -> list[Any]:
        messages = arguments["parts"]
        if not isinstance(messages, list) or not all(isinstance(m, str) for m in messages):
            raise InvalidRequest("Parts are a list of their messages.")
        writer, epoch = arguments["writer"], arguments["epoch"]
        return [self._uploads.resolved(message, writer, epoch) for message in messages]

    def fetch(self, sent: dict[str, Any]) -> bytes:
        """Encoded batches, but for those that the client holds already."""
        held_topic_id, held_upto = sent.pop("held_topic_id", None), sent.pop("held_upto", None)
        skip_damaged = bool(sent.pop("skip_damaged", False))
        if sent.keys() != {"reference", "partition", "offset", "max_records", "max_bytes"}:
            raise InvalidRequest("A fetch has other arguments. Use the same Duolog on both sides.")
        if isinstance(sent["max_bytes"], int):
            sent["max_bytes"] = min(sent["max_bytes"], _MAX_FETCH_BYTES)
        if held_topic_id is not None:
            topic = self._log.topic(sent["reference"])
            if topic.id == held_topic_id:
                return to_frames(self._beyond(held_upto, skip_damaged=skip_damaged, **sent))
        return to_frames(self._log.fetch_encoded(**sent, skip_damaged=skip_damaged))

    def _beyond(
        self,
        held_upto: int,
        *,
        reference: Any,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        skip_damaged: bool,
    ) -> FetchedEncoded:
        wanted = offset + max_records - held_upto
        if wanted > 0:
            return self._log.fetch_encoded(
                reference,
                partition,
                held_upto,
                max_records=wanted,
                max_bytes=max_bytes,
                skip_damaged=skip_damaged,
            )
        topic = self._log.topic(reference)
        head = self._log.offsets(reference)[partition]
        return FetchedEncoded(
            topic.name, topic.id, partition, held_upto, head.start, head.next_offset
        )
