"""A log that was lost, made anew from its mirror in Kafka.

| question | file |
|---|---|
| Which topics are there, and how far do they reach? | `sources.py` |
| Which offset does a record get? | `numbering.py` (pure) |
| How do records come out of Kafka, and into the log? | `records.py`, `plain_reader.py` |
| Where do groups go on? | `positions.py` |
| All of it, and that it is done wholly or not at all | `whole.py` |
"""

from __future__ import annotations

from duolog.bridge.kafka.restore.numbering import Offsets
from duolog.bridge.kafka.restore.whole import RestoredLog, RestoredPartition, restore_from_kafka

__all__ = ["Offsets", "RestoredLog", "RestoredPartition", "restore_from_kafka"]
