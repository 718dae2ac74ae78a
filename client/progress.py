"""One partition as a consumer sees it: what was handed out, what of it is done. Pure."""

from __future__ import annotations

from duolog.client.ranges import Ranges


class Progress:
    """Three places in one partition, of which each lies at or behind the one before.

    `next_offset`: what is handed out next. `floor`: all before it is done. `committed`: where the
    host says that the group is; after a seek back it may lie beyond both.
    """

    def __init__(self, offset: int) -> None:
        self.begin(offset)

    def begin(self, offset: int) -> None:
        """Start here; the host knows of it."""
        self.next_offset = self.floor = self.committed = offset
        self._done = Ranges()

    def seek(self, offset: int) -> None:
        """Go on here. The host is told when more than it knows of is done."""
        self.next_offset = self.floor = offset
        self._done.clear()

    @property
    def is_settled(self) -> bool:
        """Whether all that was handed out is done and the host knows it."""
        return self.next_offset == self.floor == self.committed

    @property
    def to_commit(self) -> int | None:
        """The position that the host is still to be told."""
        return self.floor if self.floor > self.committed else None

    def skip_to(self, offset: int) -> None:
        """What lies between is not there any more, so there is nothing to wait for."""
        if offset > self.next_offset:
            self._done.add(self.next_offset, offset)
            self.next_offset = offset
            self.floor = self._done.take_from(self.floor)

    def hand_out(self, next_offset: int) -> None:
        """Everything before this has been handed out."""
        self.next_offset = max(self.next_offset, next_offset)

    def finish(self, start: int, end: int) -> None:
        """These are done. What was done already, or not handed out, changes nothing."""
        self._done.add(max(start, self.floor), min(end, self.next_offset))
        self.floor = self._done.take_from(self.floor)

    def is_done(self, offset: int) -> bool:
        return offset < self.floor or offset in self._done

    def acknowledged(self, told: int, position: int) -> None:
        """The host was told of one position, and answered with the group's.

        A later one means that another consumer of the group got further: its records are done.
        """
        self.committed = max(self.committed, position)
        if position > max(told, self.floor):
            self._done.add(self.floor, position)
            self.next_offset = max(self.next_offset, position)
            self.floor = self._done.take_from(self.floor)
