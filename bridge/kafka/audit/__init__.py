"""Are a log and its mirror in Kafka equal? Both sides are read, by a client of their own each.

| question | file |
|---|---|
| what is said in the end? | `report.py` |
| which stretches of the log have to lie where in Kafka? | `stretches.py` (pure) |
| which records of a stretch differ? | `records.py` (pure) |
| what lies in Kafka that is not ours? | `others.py` |
| how is Kafka read? | `kafka_reader.py` |
| one partition, from its edges to its report | `partition.py` |
| do both sides know one position? | `groups.py` |
| all of it | `whole.py` |

Nothing here is shared with the mirror but what the log has stored of it, so that a mistake of the
mirror is not made again by who judges it.
"""

from __future__ import annotations

from duolog.bridge.kafka.audit.report import (
    AuditReport,
    Difference,
    Finding,
    PartitionReport,
    PositionReport,
)
from duolog.bridge.kafka.audit.whole import Watcher, audit

__all__ = [
    "AuditReport",
    "Difference",
    "Finding",
    "PartitionReport",
    "PositionReport",
    "Watcher",
    "audit",
]
