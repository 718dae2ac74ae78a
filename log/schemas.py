"""The documents of a schema registry, kept in the log beside the topics that they describe.

What they say is the registry's matter; here they are bytes by bytes, and durable like all else.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from duolog.errors import InvalidRequest
from duolog.log.commits import Committer, Job
from duolog.log.rounds import Round
from duolog.log.state import State

MAX_DOCUMENT_BYTES = 8 << 20
_BEYOND_ALL_KEYS = b"\xff" * 8


class SchemaDocuments:
    """The `schemas` family of an opened log."""

    def __init__(self, state: State, committer: Committer) -> None:
        self._state = state
        self._committer = committer
        self.kept_by: object | None = None  # who has them in memory: one for each log
        self.guard = threading.Lock()  # of `kept_by`

    def load(self) -> dict[bytes, bytes]:
        """All documents by key."""
        return dict(self._state.store.scan("schemas", b"", _BEYOND_ALL_KEYS))

    def store(self, changes: Mapping[bytes, bytes | None]) -> None:
        """Put these documents, delete those that are None: all of it, durably, or nothing."""
        for key, document in changes.items():
            if not key or key >= _BEYOND_ALL_KEYS:
                raise InvalidRequest(f"A schema document cannot have the key {key!r}.")
            if document is not None and len(document) > MAX_DOCUMENT_BYTES:
                raise InvalidRequest(
                    f"A schema document of {len(document)} bytes is over the limit of "
                    f"{MAX_DOCUMENT_BYTES}. Make the schema smaller, or split it by references."
                )
        if changes:
            self._committer.run(_StoreDocuments(changes))


class _StoreDocuments(Job):
    def __init__(self, changes: Mapping[bytes, bytes | None]) -> None:
        super().__init__()
        self._changes = dict(changes)

    def prepare(self, round_: Round) -> None:
        for key, document in self._changes.items():
            if document is None:
                round_.batch.delete("schemas", key)
            else:
                round_.batch.put("schemas", key, document)
