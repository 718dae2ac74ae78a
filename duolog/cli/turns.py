"""Reading several partitions in turns, so that none of them waits for another to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.errors import DamagedBatch

if TYPE_CHECKING:
    from collections.abc import Callable

    from duolog.log import LogAccess
    from duolog.log.damage_model import LeftOut
    from duolog.log.fetched import Fetched
    from duolog.log.model import Topic

PAGE_RECORDS = 500


class Turns:
    """Pages of a topic's partitions, in turns. `positions` is where each goes on."""

    def __init__(
        self,
        log: LogAccess,
        topic: Topic,
        positions: dict[int, int],
        *,
        skip_damaged: bool = False,
        passed_over: Callable[[int, LeftOut], object] = lambda _partition, _left_out: None,
    ) -> None:
        self._log = log
        self._skip_damaged = skip_damaged
        self._passed_over = passed_over
        self._topic = topic
        self._order = list(positions)
        self._damaged: DamagedBatch | None = None
        self.positions = positions

    def next_page(self, at_most: int | None) -> Fetched | None:
        """Some records of the next partition that has any; None when all are at their ends.

        A damaged batch ends its partition; it is raised when the others are at their ends.
        Of a limited number of records each partition gets its share.
        """
        share = PAGE_RECORDS
        if at_most is not None:
            share = max(1, min(share, at_most // len(self._order)))
        for _ in range(len(self._order)):
            partition = self._order.pop(0)
            try:
                page = self._log.fetch(
                    self._topic.id,
                    partition,
                    self.positions[partition],
                    max_records=share,
                    skip_damaged=self._skip_damaged,
                )
            except DamagedBatch as damage:
                self._damaged = self._damaged or damage
                continue
            self._order.append(partition)
            for left_out in page.left_out:
                self._passed_over(partition, left_out)
            self.positions[partition] = page.next_offset  # a hole has offsets and no records
            if page.count:
                return page
        if self._damaged is not None:
            raise self._damaged
        return None
