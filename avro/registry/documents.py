"""Where a registry keeps what it knows: small documents by key, all of them read once at the start.

The log's `schemas` family is one such place, a dictionary another.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Protocol


class Documents(Protocol):
    """Keys and values are bytes that only the registry understands."""

    def load(self) -> dict[bytes, bytes]:
        """All that is stored."""

    def store(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Write all or nothing, durable when it returns. None deletes; deleting twice is right."""


class MemoryDocuments:
    """Lost with the process. For tests and for trying things out."""

    def __init__(self, documents: Mapping[bytes, bytes] | None = None) -> None:
        self._documents = dict(documents or {})
        self._lock = Lock()

    def load(self) -> dict[bytes, bytes]:
        with self._lock:
            return dict(self._documents)

    def store(self, changes: Mapping[bytes, bytes | None]) -> None:
        with self._lock:
            for key, value in changes.items():
                if value is None:
                    self._documents.pop(key, None)
                else:
                    self._documents[key] = value
