"""Why a host that serves is not well. Pure.

Anybody may ask for it, so it names neither topics nor errors, only where they are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duolog.log.damage_model import DamagedOffsets


def reasons(
    damaged: Sequence[DamagedOffsets], workers: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """What people have to mend, a sentence each; empty if all is well.

    Waiting for Kafka is none: it ends by itself.
    """
    found = [] if not damaged else [damage_shown(damaged)]
    for name, worker in workers.items():
        found += _of_worker(name, worker)
    return found


def damage_shown(damaged: Sequence[DamagedOffsets]) -> str:
    """How much there is. All other records are served."""
    partitions = len({(damage.topic, damage.partition) for damage in damaged})
    batches = "1 damaged batch" if len(damaged) == 1 else f"{len(damaged)} damaged batches"
    return f"{batches} in {_partitions(partitions)}: see system.partitions, and `duolog topic skip`"


def _of_worker(name: str, worker: Mapping[str, Any]) -> list[str]:
    if worker.get("state") == "given up":
        return [f"the worker '{name}' has given up: only other settings help; see the host's log"]
    found = []
    halted = worker.get("partitions", {}).get("halted", 0)
    if halted:
        found.append(f"the mirror of {_partitions(halted)} is halted: see `duolog mirror status`")
    ends = worker.get("ends_in_a_row", 0)  # told where they are no accident
    if ends:
        found.append(f"the worker '{name}' has ended {ends} times in a row: see the host's log")
    return found


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"
