"""The host's side of one process that answers queries."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Final

from duolog.bridge.sql.frames import HEAD, Frame, Kind, Query, framed, head_of
from duolog.bridge.sql.rules import too_large
from duolog.errors import DuologError, QueryProcessDied
from duolog.reach.failures import error_of

Answer = Callable[[Mapping[str, Any]], Awaitable[bytes]]
"""The frame that answers a call."""

_START_SECONDS: Final = 60.0  # on a machine that is busy with all else
_SAID_BYTES: Final = 64 << 10
_NO_MEMORY: Final = ("memory allocation of", "bad_alloc", "Cannot allocate memory")
_MODULE: Final = "duolog.bridge.sql.query_process"
_PASSED_ON: Final = (
    *("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
)
_FEW_THREADS: Final = {  # each takes memory: on a large machine, more than a query
    "TOKIO_WORKER_THREADS": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_IO_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a query ended: with what it answers, or an error. A worn process is not used again."""

    content: bytes = b""
    error: DuologError | None = None
    is_worn: bool = False


class Child:
    """One process, which takes a query at a time."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        complaints: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._complaints = complaints  # a file: what it writes to stderr
        self._reader = reader
        self._writer = writer
        self._ending: asyncio.Task[None] | None = None
        self.said = ""

    @classmethod
    async def start(cls, memory_bytes: int) -> Child:
        """A process that is ready. Raises QueryProcessDied."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            complaints, to_complain = os.pipe()
            os.set_blocking(complaints, False)
            os.set_blocking(to_complain, False)  # who complains at length is not held up by it
            try:
                process = _spawn(memory_bytes, theirs, to_complain)
            except OSError as error:
                writer.close()
                os.close(complaints)
                raise QueryProcessDied(
                    f"A process for queries could not be started: {error.strerror}. Try again."
                ) from error
            finally:
                os.close(to_complain)
        child = cls(process, complaints, reader, writer)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await child._next_frame()
        except TimeoutError:
            await child.end()
            raise QueryProcessDied(
                f"A process for queries was not ready within {_START_SECONDS:g} s. Try again."
            ) from None
        except BaseException:
            await child.end()
            raise
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None and not self._reader.at_eof()

    async def run(self, query: Query, answer: Answer) -> Outcome:
        """Have it run a query. Raises QueryProcessDied, or QueryTooLarge if that is why."""
        content = bytearray()
        self._writer.write(framed(Kind.QUERY, asdict(query)))
        while True:
            frame = await self._next_frame()
            match frame.kind:
                case Kind.CALL:
                    self._writer.write(await answer(frame.json))
                    with suppress(ConnectionError):  # then it is gone, and the next frame says so
                        await self._writer.drain()
                case Kind.PIECE if len(content) <= query.max_answer_bytes:
                    content += frame.content
                case Kind.DONE:
                    return Outcome(bytes(content), is_worn=frame.json["is_worn"])
                case Kind.FAILED:
                    return Outcome(error=error_of(frame.json), is_worn=frame.json["is_worn"])
                case _:
                    raise QueryProcessDied("The query's process said what it should not.")

    async def end(self) -> None:
        """Kill it, and wait until it is gone."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._process.kill()
        await asyncio.to_thread(self._process.wait)
        with suppress(OSError):
            self.said = os.read(self._complaints, _SAID_BYTES).decode(errors="replace")
        os.close(self._complaints)
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    async def _next_frame(self) -> Frame:
        try:
            kind, length = head_of(await self._reader.readexactly(HEAD.size))
            return Frame(kind, await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            await self.end()
            raise death_of(self._process.returncode, self.said) from None


def _spawn(memory_bytes: int, connection: socket.socket, errors: int) -> subprocess.Popen[bytes]:
    variables = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - nothing in it comes from a request
        [sys.executable, "-P", "-B", "-m", _MODULE, str(memory_bytes)],
        stdin=connection.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=errors,
        env={**variables, **_FEW_THREADS},
        start_new_session=True,  # Ctrl-C is the host's to hear
    )


def death_of(code: int, said: str) -> DuologError:
    """Why it ended by itself."""
    if any(words in said for words in _NO_MEMORY):
        return too_large()
    how = f"code {code}" if code >= 0 else signal.Signals(-code).name
    return QueryProcessDied(
        f"The process that ran the query ended before it was through ({how}). Only the query is "
        "lost: send it again, or a smaller one if it ends this way each time."
    )
