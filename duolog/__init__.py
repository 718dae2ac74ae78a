"""One log, two tongues: an embedded topic log for change events."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.avro.embedded import open_log

__all__ = ["open_log"]


def __getattr__(name: str) -> object:
    # Loaded when first asked for: a Spark task imports duolog where rocksdict is not installed.
    if name == "open_log":
        from duolog.avro.embedded import open_log

        return open_log
    raise AttributeError(f"module 'duolog' has no attribute '{name}'")
