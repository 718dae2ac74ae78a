"""What is done from outside of consumers and publishers: topics, groups, SQL.

Over the calls by which Duolog's own processes reach a log, so it takes a token for all topics:
`service` to look, `dba` to change.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from duolog.client.option_words import ConnectionWords
from duolog.client.options import ConnectionOptions, admin_options
from duolog.errors import ClientClosed
from duolog.log.model import (
    AtOffset,
    GroupPosition,
    PartitionOffsets,
    Retention,
    Start,
    Topic,
    TopicSettings,
)
from duolog.reach import RemoteOptions, reach

if TYPE_CHECKING:
    from duolog.log.access import LogAccess
    from duolog.sql import SqlResult


class Admin:
    """Safe for many threads. It connects when it is first asked; close it at the end."""

    def __init__(self, **options: Unpack[ConnectionWords]) -> None:
        self._options = admin_options(options)
        self._guard = threading.Lock()  # of the two below
        self._opened: LogAccess | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._options.address}>"

    @property
    def log(self) -> LogAccess:
        """Everything that can be asked of a log, wherever it is."""
        with self._guard:
            if self._closed:
                raise ClientClosed(f"{self!r} has been closed. Make a new one.")
            if self._opened is None:
                self._opened = _reached(self._options)
            return self._opened

    # -- topics

    def topics(self) -> tuple[Topic, ...]:
        return self.log.topics()

    def topic(self, topic: str) -> Topic:
        """One topic, by name or alias; UnknownTopic when there is none."""
        return self.log.topic(topic)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        alias: str | None = None,
        retention_seconds: float | None = None,
        retention_max_bytes: int | None = None,
        if_not_exists: bool = False,
    ) -> Topic:
        """For formats, envelopes and all else, there are `sql` and `log.create_topic`."""
        retention = Retention(retention_seconds, retention_max_bytes)
        settings = TopicSettings(alias=alias, partitions=partitions, retention=retention)
        return self.log.create_topic(name, settings, if_not_exists=if_not_exists)

    def drop_topic(self, topic: str, *, if_exists: bool = False) -> None:
        """Remove it with its records and what groups know of it."""
        self.log.drop_topic(topic, if_exists=if_exists)

    def offsets(self, topic: str) -> tuple[PartitionOffsets, ...]:
        """How far each partition reaches."""
        return self.log.offsets(topic)

    # -- groups

    def groups(self) -> tuple[str, ...]:
        """All groups that have a position: those that have read or acknowledged something."""
        return tuple(sorted({each.group for each in self.log.group_positions()}))

    def positions(
        self, group: str | None = None, topic: str | None = None
    ) -> tuple[GroupPosition, ...]:
        """Where groups are: all, one, or those of a topic."""
        return self.log.group_positions(group, topic)

    def lag(self, group: str) -> dict[tuple[str, int], int]:
        """How many records the group has not acknowledged, by topic and partition."""
        log = self.log
        lags: dict[tuple[str, int], int] = {}
        ends = {(each.topic, each.partition): each for each in log.all_offsets()}
        for each in log.group_positions(group):
            end = ends.get((each.topic, each.partition))
            if end is not None:
                at = max(each.position, end.start)
                lags[each.topic, each.partition] = max(0, end.next_offset - at)
        return lags

    def seek(self, group: str, topic: str, to: Start | int, partition: int = 0) -> GroupPosition:
        """Move a group anywhere, also back. Its consumers should not be at work meanwhile."""
        start = AtOffset(to) if isinstance(to, int) else to
        log = self.log
        return log.seek(group, topic, partition, log.resolve(topic, partition, start))

    def delete_group(self, group: str, topic: str | None = None) -> int:
        """Forget where a group was; the number of positions that were forgotten."""
        return self.log.delete_group(group, topic)

    # -- SQL

    def sql(self, statement: str) -> SqlResult:
        """One statement: CREATE TOPIC, ALTER TOPIC, SELECT (with `duolog[sql]`) and all others."""
        from duolog.sql import run

        return run(self.log, statement)

    # -- the end

    def close(self) -> None:
        """Let go of the host. Closing again does nothing."""
        with self._guard:
            self._closed = True
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _reached(options: ConnectionOptions) -> Any:
    return reach(
        url=str(options.address),
        token=None if options.token is None else options.token.reveal(),
        remote=RemoteOptions(
            deadline_seconds=options.deadline_seconds,
            connect_timeout_seconds=options.connect_timeout_seconds,
            answer_timeout_seconds=options.answer_timeout_seconds,
            allow_plain_http=options.allow_plain_http,
            ca_path=options.ca_path,
        ),
    )
