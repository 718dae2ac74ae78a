"""Asking coordinators what groups have committed, over connections of our own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Final

from duolog.bridge.kafka.feed.offset_requests import FindCoordinator, OffsetFetch, OffsetsHeld
from duolog.bridge.kafka.mirror.connections import Connections
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import KafkaRefused, KafkaUnreachable

NOT_READY: Final = frozenset({14, 15, 16})
"""Kafka's numbers for: the coordinator loads, there is none yet, it is another one."""

_UNSTABLE: Final = 88  # an open transaction has a commit that may be taken back
_AGAIN_SECONDS: Final = 0.05


class HeldOffsets:
    """What groups have committed. Blocks; one caller at a time is served.

    What was committed in transactions that are still open is waited for.
    """

    def __init__(self, settings: KafkaSettings, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._one_asks = threading.Lock()
        self._runner = asyncio.Runner()
        self._connections = Connections(settings)
        self._nodes: dict[str, int] = {}
        self._closed = False

    def of(self, group: str, partitions: Iterable[tuple[str, int]]) -> OffsetsHeld:
        """A group's offsets in these partitions."""
        request = OffsetFetch(group, tuple(partitions))
        with self._one_asks:
            return self._runner.run(self._ask(request))

    def close(self) -> None:
        with self._one_asks:
            if not self._closed:
                self._closed = True
                self._runner.run(self._connections.close())
                self._runner.close()

    async def _ask(self, request: OffsetFetch) -> OffsetsHeld:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timeout_seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    held = await self._once(request)
            except (KafkaUnreachable, TimeoutError) as error:
                await self._forget(request.group)
                if clock() >= deadline:
                    raise KafkaUnreachable(
                        f"Kafka's coordinator of '{request.group}' did not answer within "
                        f"{self._timeout_seconds:g} s. It is asked again; look at the brokers if "
                        "it goes on."
                    ) from error
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            if not held.errors:
                return held
            last = clock() + 2 * _AGAIN_SECONDS >= deadline
            if last or not held.errors <= NOT_READY | {_UNSTABLE}:
                raise _refused(request.group, held.errors)
            if held.errors & NOT_READY:
                self._nodes.pop(request.group, None)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _once(self, request: OffsetFetch) -> OffsetsHeld:
        node = self._nodes.get(request.group)
        if node is None:
            await self._connections.look(())
            found = await self._connections.send_to_any(FindCoordinator(request.group))
            if found.error:
                return OffsetsHeld(found.error, {})
            node = self._nodes[request.group] = found.node
        return await self._connections.send(node, request)

    async def _forget(self, group: str) -> None:
        """Begin anew: a connection on which an answer is missing is of no use."""
        self._nodes.pop(group, None)
        await self._connections.close()


def _refused(group: str, errors: frozenset[int]) -> KafkaRefused:
    numbers = ", ".join(map(str, sorted(errors)))
    why = "a transaction with its offsets stays open" if _UNSTABLE in errors else "see Kafka's list"
    return KafkaRefused(
        f"Kafka does not tell what group '{group}' has committed (error {numbers}: {why}). It is "
        "asked again; the mirror's user needs Describe and Read on groups.",
        error=min(errors),
    )
