"""Are records of others in our Kafka topic copies of ours? Pure.

Who mirrors the log a second time writes what the log has, record after record, with the same key,
value, headers and time. An application that writes for itself has times of its own; it may write
something twice, and values that are equal to some of ours. So what counts is a stretch: records of
others, one after the other, that are records of the log one after the other, their times included,
and not all alike. Two are enough when their writer also counts them as the log does, which is
what a mirror of a copied log does; else three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from duolog.bridge.kafka.wire.record_batch import SEQUENCES
from duolog.bridge.kafka.wire.unpacked import Content, StoredRecord

ENOUGH: Final = 3
ENOUGH_WHEN_COUNTED: Final = 2


@dataclass(frozen=True, slots=True)
class OurRecord:
    """A record of the log: its sequence in Kafka, and the one that is mirrored before it."""

    log_offset: int
    sequence: int
    before: int
    content: Content


@dataclass(frozen=True, slots=True)
class Copies:
    """A stretch of copies: the first one of it that was seen, and which record of ours that is."""

    kafka_offset: int
    log_offset: int
    count: int = 1
    counted: bool = True  # their writer gives them the numbers that the log gives them
    alike: bool = True


def without_header(content: Content, names: Iterable[str | None]) -> Content:
    """Without the header that a mirror may have added at the end."""
    if content.headers and content.headers[-1][0] in names:
        return replace(content, headers=content.headers[:-1])
    return content


def copies(theirs: Sequence[StoredRecord], ours: Iterable[OurRecord]) -> Copies | None:
    """The first stretch that is enough to tell; None where there is none."""
    places: dict[Content, list[OurRecord]] = {}
    for our in ours:
        places.setdefault(our.content, []).append(our)
    before: dict[int, Copies] = {}  # stretches that end with the record before, by our offset there
    previous: Content | None = None
    for record in theirs:
        now: dict[int, Copies] = {}
        for our in places.get(record.content, ()):
            stretch = before.get(our.log_offset - 1) or before.get(our.before)
            counted = record.sequence in {our.sequence, our.log_offset % SEQUENCES}
            if stretch is None:
                grown = Copies(record.kafka_offset, our.log_offset, counted=counted)
            else:
                grown = replace(
                    stretch,
                    count=stretch.count + 1,
                    counted=stretch.counted and counted,
                    alike=stretch.alike and record.content == previous,
                )
            enough = ENOUGH_WHEN_COUNTED if grown.counted else ENOUGH
            if grown.count >= enough and not grown.alike:
                return grown
            now[our.log_offset] = grown
        before, previous = now, record.content
    return None
