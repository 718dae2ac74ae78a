"""How the mirror's batches are compressed."""

from __future__ import annotations

from enum import StrEnum


class Compression(StrEnum):
    """Arrow's lz4 frames are refused by brokers, so there are two."""

    NONE = "none"
    ZSTD = "zstd"
