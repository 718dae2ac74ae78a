"""Asking coordinators what groups have committed, over connections of our own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeVar

from duolog.bridge.kafka.feed.many_offsets import FindCoordinators, OffsetFetchOfMany
from duolog.bridge.kafka.feed.offset_requests import (
    FindCoordinator,
    OffsetDelete,
    OffsetFetch,
    OffsetsDeleted,
    OffsetsHeld,
)
from duolog.bridge.kafka.mirror.connections import Connections
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import (
    KafkaRefused,
    KafkaTokenUnavailable,
    KafkaUnreachable,
    KafkaUntrusted,
)

NOT_READY: Final = frozenset({14, 15, 16})
"""Kafka's numbers for: the coordinator loads, there is none yet, it is another one."""

_UNSTABLE: Final = 88  # an open transaction has a commit that may be taken back
_AGAIN_SECONDS: Final = 0.05


class _Answer(Protocol):
    @property
    def errors(self) -> frozenset[int]: ...


A = TypeVar("A", bound=_Answer)
A_co = TypeVar("A_co", bound=_Answer, covariant=True)


class _Request(Protocol[A_co]):
    """To a group's coordinator."""

    @property
    def group(self) -> str: ...
    def failed(self, error: int) -> A_co: ...
    def prepare(self, versions: Any) -> Any: ...


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

    def forget(self, group: str, partitions: Iterable[tuple[str, int]]) -> OffsetsDeleted:
        """Delete a group's offsets in these partitions."""
        request = OffsetDelete(group, tuple(partitions))
        with self._one_asks:
            return self._runner.run(self._ask(request))

    def of_many(
        self, groups: Sequence[str], partitions: Iterable[tuple[str, int]]
    ) -> dict[str, OffsetsHeld]:
        """Groups' offsets in these partitions. Left out is what cannot be told at once."""
        with self._one_asks:
            return self._runner.run(self._ask_many(groups, tuple(partitions)))

    def close(self) -> None:
        with self._one_asks:
            if not self._closed:
                self._closed = True
                self._runner.run(self._connections.close())
                self._runner.close()

    async def _ask(self, request: _Request[A]) -> A:
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._timeout_seconds
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    held = await self._once(request)
            except (KafkaUnreachable, TimeoutError) as error:
                await self._forget(request.group)
                if isinstance(error, KafkaTokenUnavailable | KafkaUntrusted):
                    raise
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

    async def _once(self, request: _Request[A]) -> A:
        node = self._nodes.get(request.group)
        if node is None:
            await self._connections.look(())
            found = await self._connections.send_to_any(FindCoordinator(request.group))
            if found.error:
                return request.failed(found.error)
            node = self._nodes[request.group] = found.node
        answer: A = await self._connections.send(node, request)
        return answer

    async def _ask_many(
        self, groups: Sequence[str], partitions: Sequence[tuple[str, int]]
    ) -> dict[str, OffsetsHeld]:
        held: dict[str, OffsetsHeld] = {}
        try:
            async with asyncio.timeout(self._timeout_seconds):
                unknown = [group for group in groups if group not in self._nodes]
                if unknown:
                    await self._connections.look(())
                    found = await self._connections.send_to_any(FindCoordinators(unknown))
                    self._nodes.update(found)
                by_node: dict[int, list[str]] = {}
                for group in groups:
                    if group in self._nodes:
                        by_node.setdefault(self._nodes[group], []).append(group)
                for node, its_own in by_node.items():
                    many = OffsetFetchOfMany(its_own, partitions)
                    told = await self._connections.send(node, many)
                    held.update(told)
        except (KafkaUnreachable, TimeoutError):
            await self._connections.close()
        return held

    async def _forget(self, group: str) -> None:
        """Begin anew: a connection on which an answer is missing is of no use."""
        self._nodes.pop(group, None)
        await self._connections.close()


def _refused(group: str, errors: frozenset[int]) -> KafkaRefused:
    numbers = ", ".join(map(str, sorted(errors)))
    why = "a transaction with its offsets stays open" if _UNSTABLE in errors else "see Kafka's list"
    return KafkaRefused(
        f"Kafka does not tell what group '{group}' has committed, or does not forget it (error "
        f"{numbers}: {why}). It is asked again; the mirror's user needs Describe and Read on "
        "groups, and Delete to delete them.",
        error=min(errors),
    )
