"""A process that answers queries, as its host starts it: `python -m … MEMORY_BYTES`.

Its stdin is a socket to the host, and all that it has. It ends when the host lets go of that, and
when it takes more memory than it may: what DataFusion does not count, it cannot refuse.
"""

from __future__ import annotations

import os
import queue
import resource
import socket
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from duolog.bridge.sql.frames import HEAD, Frame, Kind, Query, framed, head_of
from duolog.bridge.sql.rules import too_large
from duolog.errors import DuologError, HostFailed
from duolog.reach.failures import error_of, failure_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duolog.log.access import LogAccess

_NICE: Final = 10  # a host that has something to do comes first
_PIECE_BYTES: Final = 256 << 10
_OPEN_FILES: Final = 64


class Channel:
    """The socket to the host. Queries come by it one after the other; calls go from any thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._queries: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        self._one_call_at_a_time = threading.Lock()
        self._one_frame_at_a_time = threading.Lock()

    def listen(self) -> None:
        """Take what the host sends, until it lets go; then this process ends."""
        try:
            while True:
                kind, length = head_of(self._received(HEAD.size))
                frame = Frame(kind, self._received(length))
                (self._queries if kind is Kind.QUERY else self._results).put(frame)
        finally:
            os._exit(0)  # in whatever it is: DataFusion's threads are not to be waited for

    def queries(self) -> Iterator[Query]:
        while True:
            yield Query(**self._queries.get().json)

    def send(self, kind: Kind, content: Any = b"") -> None:
        with self._one_frame_at_a_time, suppress(OSError):  # `listen` sees that too, and ends it
            self._connection.sendall(framed(kind, content))

    def ask(self, call: str, arguments: dict[str, Any]) -> Any:
        """What the host answers; its error raised."""
        with self._one_call_at_a_time:
            self.send(Kind.CALL, {"call": call, "arguments": arguments})
            result = self._results.get()
        if result.kind is Kind.BATCHES:
            return result.content
        if result.kind is Kind.REFUSED:
            raise error_of(result.json) or HostFailed("The host refused without a reason.")
        return result.json

    def _received(self, length: int) -> bytes:
        content = bytearray(length)
        view = memoryview(content)
        while view:
            count = self._connection.recv_into(view)
            if not count:
                raise OSError("the host is gone")
            view = view[count:]
        return bytes(content)


def main() -> None:
    memory_bytes = int(sys.argv[1])
    limit_itself(memory_bytes)
    channel = Channel(socket.socket(fileno=os.dup(0)))
    threading.Thread(target=channel.listen, name="listen", daemon=True).start()
    # Loaded now: a process is started a moment before it is needed, and then kept.
    import_module("duolog.sql.select.query")
    with suppress(ModuleNotFoundError):  # the query says which
        import_module("duolog.sql.select.session")
    at_start = held_bytes()
    channel.send(Kind.READY)
    for query in channel.queries():
        kind, said = answer(query, channel)
        worn = is_worn(held_bytes(), at_start, memory_bytes)
        channel.send(kind, {**said, "is_worn": worn})


def limit_itself(memory_bytes: int) -> None:
    """Memory, as a limit of data: one of addresses would count libraries and what is only
    reserved. No files are written, and no core.
    """
    resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, _OPEN_FILES))
    os.nice(_NICE)


def held_bytes() -> int:
    """What counts against the limit of data; 0 where the system does not say."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(each for each in lines if each.startswith("VmData:")).split()[1]) << 10
    return 0


def is_worn(held: int, at_start: int, memory_bytes: int) -> bool:
    """Whether what allocators have kept leaves less than half of its memory to the next query."""
    return held - at_start > (memory_bytes - at_start) // 2


def answer(query: Query, channel: Channel) -> tuple[Kind, dict[str, Any]]:
    """Run a query and send what it answers; how it ended."""
    try:
        content = answered(query, channel)
    except DuologError as error:
        return Kind.FAILED, failure_of(error)
    except MemoryError:  # of Python or Arrow; what DataFusion cannot have ends the process
        return Kind.FAILED, failure_of(too_large())
    for at in range(0, len(content), _PIECE_BYTES):
        channel.send(Kind.PIECE, memoryview(content)[at : at + _PIECE_BYTES])
    return Kind.DONE, {}


def answered(query: Query, channel: Channel) -> bytes:
    from duolog.avro.reading import ValueReader
    from duolog.bridge.sql.asked_log import AskedLog, AskedSchemas
    from duolog.bridge.sql.shown import AnswerLimits, as_arrow, as_json
    from duolog.clock import SystemClock
    from duolog.sql.select.limits import QueryLimits
    from duolog.sql.select.query import select
    from duolog.sql.statements import Select

    result = select(
        cast("LogAccess", AskedLog(channel.ask)),
        Select(query.select, query.position),
        query.text,
        reader=ValueReader(cast("Any", AskedSchemas(channel.ask))),
        clock=SystemClock(),
        limits=QueryLimits(query.timeout_seconds, query.pool_bytes),
    )
    limits = AnswerLimits(query.max_rows, query.max_answer_bytes)
    try:
        return as_arrow(result, limits) if query.as_arrow else as_json(result, limits)
    finally:
        result.close()


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 - the host has what it says in its journal
        traceback.print_exc()
    os._exit(1)
