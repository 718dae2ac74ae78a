"""Batches that cannot be decoded, and the holes that are made of them, as plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DamagedOffsets:
    """Offsets of one partition whose records cannot be decoded: one stored batch, or none at all
    where there should be one. `next_offset` is the first one behind it.
    """

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    reason: str
    found_at_ms: int

    @property
    def state(self) -> str:
        """What the partition's state is called."""
        return f"damaged batch at offsets {self.first_offset}-{self.next_offset - 1}"


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets that stay used and have no records: a damaged batch was there and was skipped."""

    topic: str
    partition: int
    first_offset: int
    next_offset: int
    by: str
    at_ms: int
    reason: str  # what was wrong with the batch
    batch_bytes: int  # as it was stored

    @property
    def count(self) -> int:
        return self.next_offset - self.first_offset


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Offsets that a read passed over: of a hole, or of a damaged batch that nobody skipped yet."""

    first_offset: int
    next_offset: int
    is_damaged: bool
    reason: str

    @property
    def count(self) -> int:
        return self.next_offset - self.first_offset


def reason_of(error: BaseException) -> str:
    """Why a batch cannot be decoded, as sentences, without what is to be done."""
    text = " ".join(str(error).split()) or type(error).__name__
    told = [each for each in re.split(r"(?<=\.) ", text) if "estore the log" not in each]
    text = " ".join(told) or "It cannot be decoded."
    return text if text.endswith(".") else f"{text}."
