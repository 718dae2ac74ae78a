"""One consumer of a group is answered from a partition at a time; another is told who it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from duolog.errors import PartitionHeld
from duolog.log.model import Topic

_Place = tuple[str, int, int]


class Places:
    """What is held now. Used from one event loop."""

    def __init__(self) -> None:
        self._held: dict[_Place, str] = {}

    @contextmanager
    def hold(
        self, group: str, topic: Topic, partitions: Iterable[int], holder: str
    ) -> Iterator[None]:
        """Hold these partitions, all or none, for as long as the poll is being answered."""
        places = tuple((group, topic.id, partition) for partition in partitions)
        self.check_free(group, topic, (place[2] for place in places))
        self._held.update(dict.fromkeys(places, holder))
        try:
            yield
        finally:
            for place in places:
                del self._held[place]

    def check_free(self, group: str, topic: Topic, partitions: Iterable[int]) -> None:
        """Raises PartitionHeld where one of these partitions is held."""
        for partition in partitions:
            holder = self._held.get((group, topic.id, partition))
            if holder is not None:
                raise PartitionHeld(
                    f"A consumer of group '{group}' is being answered from topic '{topic.name}' "
                    f"partition {partition} now: {holder}. Poll again when it is through, or take "
                    "another partition or group.",
                    holder=holder,
                )

    def __len__(self) -> int:
        return len(self._held)
