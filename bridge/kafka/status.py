"""What the worker tells its host of itself: a line of JSON, however much there is to tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from duolog.bridge.kafka.mirror.mirroring import PartitionStatus
from duolog.bridge.kafka.mirror.partition import Phase
from duolog.bridge.kafka.positions.settling import SettlingStatus
from duolog.errors import DuologError

# A line has at most 64 KiB: names of topics and groups, and errors, may be long.
MOST_TOPICS: Final = 200
_MOST_TROUBLES: Final = 20
_TOPICS_BYTES: Final = 24 << 10
_TROUBLES_BYTES: Final = 16 << 10
_REFUSED_BYTES: Final = 12 << 10
_LONGEST_TEXT: Final = 400

Item = TypeVar("Item")


@dataclass(slots=True)
class _Seen:
    reached: int
    got_on_at: float
    got_on: bool = False
    skipped: int = 0
    foreign: int = 0


@dataclass(frozen=True, slots=True)
class Course:
    """How it went since the worker started. `skipped` includes what was skipped before that."""

    skipped: int
    foreign: int
    stands_seconds: float  # how long the partition that is behind and stands longest has stood
    has_got_on: bool  # each of those that are behind has got on, or had everything, since the start


class History:
    """What is remembered of partitions between two looks. Its counts never go down."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], _Seen] = {}
        self._skipped = 0
        self._foreign = 0

    def note(self, partitions: Iterable[PartitionStatus], now: float) -> Course:
        """Take a look at all partitions into account."""
        stands, has_got_on = 0.0, True
        for status in partitions:
            seen = self._seen.setdefault(
                (status.topic, status.partition), _Seen(status.next_log_offset, now)
            )
            self._count(seen, status)
            _move(seen, status, now)
            if status.behind and status.phase is not Phase.PAUSED:
                stands = max(stands, now - seen.got_on_at)
                has_got_on = has_got_on and seen.got_on
        return Course(self._skipped, self._foreign, stands, has_got_on)

    def _count(self, seen: _Seen, status: PartitionStatus) -> None:
        # A partition that begins anew has no skips until it knows again what is stored.
        self._skipped += max(0, status.skipped - seen.skipped)
        seen.skipped = max(seen.skipped, status.skipped)
        # Foreign ones are counted from 0 then.
        is_same = status.foreign >= seen.foreign
        self._foreign += status.foreign - (seen.foreign if is_same else 0)
        seen.foreign = status.foreign


def _move(seen: _Seen, status: PartitionStatus, now: float) -> None:
    """Whether it has got on. Finding out how far it was before is not getting on."""
    has_all = status.phase is Phase.MIRRORING and not status.behind
    if has_all or 0 < seen.reached < status.next_log_offset:
        seen.got_on_at, seen.got_on = now, True
    elif status.phase is Phase.PAUSED:  # it does not stand: it is not to get on
        seen.got_on_at = now
    seen.reached = status.next_log_offset or seen.reached


def summary(
    cluster_id: str,
    partitions: Sequence[PartitionStatus],
    course: Course,
    trouble: DuologError | None = None,
) -> dict[str, Any]:
    """How the mirror is, in one line however many partitions there are.

    `trouble`: why it does not find the cluster, and has no partitions yet.
    """
    troubles = [_trouble(status) for status in partitions if status.trouble is not None]
    if trouble is not None:
        troubles.insert(0, {"code": type(trouble).__name__, "error": _short(str(trouble))})
    topics: Counter[str] = Counter()
    for status in partitions:
        topics[status.topic] += status.behind
    most = sorted(topics.items(), key=lambda each: (-each[1], each[0]))[:MOST_TOPICS]
    shown = dict(_fitting(most, _TOPICS_BYTES))
    return {
        "state": "mirroring" if cluster_id else "connecting",
        "cluster": cluster_id,
        "partitions": dict(Counter(status.phase.value for status in partitions)),
        "behind": topics.total(),
        "behind_paused": sum(s.behind for s in partitions if s.phase is Phase.PAUSED),
        "topics": shown,
        "behind_elsewhere": topics.total() - sum(shown.values()),
        "all_topics": len(shown) == len(topics),
        "skipped": course.skipped,
        "foreign": course.foreign,
        "stands_seconds": round(course.stands_seconds, 1),
        "has_got_on": course.has_got_on,
        "troubles": _fitting(troubles[:_MOST_TROUBLES], _TROUBLES_BYTES),
    }


def summary_of_groups(status: SettlingStatus) -> dict[str, Any]:
    """The same of group positions. `refused` names some, `refused_groups` counts all."""
    refused = [(group, _short(said)) for group, said in status.refused.items()]
    return {
        "watching": status.watching,
        "pending": len(status.pending),
        "refused": dict(_fitting(refused[:_MOST_TROUBLES], _REFUSED_BYTES)),
        "refused_groups": len(refused),
        "trouble": None if status.trouble is None else _short(status.trouble),
    }


def _trouble(status: PartitionStatus) -> Mapping[str, Any]:
    return {
        "topic": status.topic,
        "partition": status.partition,
        "code": status.trouble_code,
        "error": _short(status.trouble or ""),
    }


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def _fitting(items: Iterable[Item], most_bytes: int) -> list[Item]:
    """The first ones, as many as have room as JSON."""
    taken: list[Item] = []
    left = most_bytes
    for item in items:
        left -= len(json.dumps(item)) + 1
        if left < 0:
            break
        taken.append(item)
    return taken
