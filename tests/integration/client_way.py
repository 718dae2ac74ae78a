"""A way to a host, on an address that stays while hosts come and go behind it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

DEADLINE_SECONDS = 60


class Way:
    """Passes bytes on to whichever port is named; without one, whoever asks is hung up on."""

    def __init__(self, port: int | None = None, *, lost_answers: int = 0) -> None:
        self.behind = port
        self.lost_answers = lost_answers  # so many answers are not passed on
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="way")
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _pass_on(self, asker: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        writers = [to]
        self._writers.add(to)
        try:
            with suppress(OSError):
                back, forth = await asyncio.open_connection("127.0.0.1", self.behind or 1)
                writers.append(forth)
                ways = (self._pump(asker, forth, False), self._pump(back, to, True))
                pumps = [asyncio.create_task(way) for way in ways]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:  # also when the way ends
            self._writers.discard(to)
            for writer in writers:
                writer.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool
    ) -> None:
        with suppress(OSError):
            while content := await reader.read(1 << 16):
                if is_answer and self.lost_answers > 0:
                    self.lost_answers -= 1
                    return
                writer.write(content)
                await writer.drain()

    def hang_up(self) -> None:
        """End the connections that are there."""

        def close_all() -> None:
            for writer in self._writers:
                writer.close()

        self._loop.call_soon_threadsafe(close_all)

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(DEADLINE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_SECONDS)
        self._loop.close()


@contextmanager
def way_to(port: int | None = None, *, lost_answers: int = 0) -> Iterator[Way]:
    way = Way(port, lost_answers=lost_answers)
    try:
        yield way
    finally:
        way.close()
