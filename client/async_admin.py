"""The same as `Admin` for asyncio: each call runs in a thread."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from duolog.client.admin import Admin
from duolog.client.option_words import ConnectionWords
from duolog.log.model import GroupPosition, PartitionOffsets, Start, Topic

if TYPE_CHECKING:
    import pyarrow as pa


class AsyncAdmin:
    """Use it as an async context manager. `admin` is the one that it runs."""

    def __init__(self, **options: Unpack[ConnectionWords]) -> None:
        self.admin = Admin(**options)

    def __repr__(self) -> str:
        return repr(self.admin).replace("Admin", "AsyncAdmin", 1)

    async def topics(self) -> tuple[Topic, ...]:
        return await asyncio.to_thread(self.admin.topics)

    async def topic(self, topic: str) -> Topic:
        """One topic, by name or alias; UnknownTopic when there is none."""
        return await asyncio.to_thread(self.admin.topic, topic)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        alias: str | None = None,
        retention_seconds: float | None = None,
        retention_max_bytes: int | None = None,
        if_not_exists: bool = False,
    ) -> Topic:
        """For formats, envelopes and all else, there is `sql`."""
        return await asyncio.to_thread(
            self.admin.create_topic,
            name,
            partitions=partitions,
            alias=alias,
            retention_seconds=retention_seconds,
            retention_max_bytes=retention_max_bytes,
            if_not_exists=if_not_exists,
        )

    async def drop_topic(self, topic: str, *, if_exists: bool = False) -> None:
        """Remove it with its records and what groups know of it."""
        await asyncio.to_thread(self.admin.drop_topic, topic, if_exists=if_exists)

    async def offsets(self, topic: str) -> tuple[PartitionOffsets, ...]:
        """How far each partition reaches."""
        return await asyncio.to_thread(self.admin.offsets, topic)

    async def groups(self) -> tuple[str, ...]:
        """All groups that have a position: those that have read or acknowledged something."""
        return await asyncio.to_thread(self.admin.groups)

    async def positions(
        self, group: str | None = None, topic: str | None = None
    ) -> tuple[GroupPosition, ...]:
        """Where groups are: all, one, or those of a topic."""
        return await asyncio.to_thread(self.admin.positions, group, topic)

    async def lag(self, group: str) -> dict[tuple[str, int], int]:
        """How many records the group has not acknowledged, by topic and partition."""
        return await asyncio.to_thread(self.admin.lag, group)

    async def seek(
        self, group: str, topic: str, to: Start | int, partition: int = 0
    ) -> GroupPosition:
        """Move a group anywhere, also back. Its consumers should not be at work meanwhile."""
        return await asyncio.to_thread(self.admin.seek, group, topic, to, partition)

    async def delete_group(self, group: str, topic: str | None = None) -> int:
        """Forget where a group was; the number of positions that were forgotten."""
        return await asyncio.to_thread(self.admin.delete_group, group, topic)

    async def sql(self, statement: str) -> pa.Table:
        """One statement, and its answer as a table."""
        return await asyncio.to_thread(lambda: self.admin.sql(statement).table())

    async def close(self) -> None:
        """Let go of the host. Closing again does nothing."""
        await asyncio.to_thread(self.admin.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
