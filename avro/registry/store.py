"""The state of a registry together with its documents: what is stored is what is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from duolog.avro.registry import refusals
from duolog.avro.registry.documents import Documents
from duolog.avro.registry.model import Version
from duolog.avro.registry.state import State
from duolog.avro.registry.stored import Batch, decode, encode


class Store:
    """Many readers' questions are short; writers go one after the other."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._writers_turn = RLock()  # held while a change is decided and stored
        self._state_lock = RLock()  # guards _state
        self._state: State | None = None
        self._state = self._load()
        self.max_bytes: int | None = None  # beyond, nothing is added; None: no limit

    @contextmanager
    def reading(self) -> Iterator[State]:
        """The state, which stands still meanwhile. Ask, do not compute."""
        with self._state_lock:
            if self._state is None:
                self._state = self._load()
            yield self._state

    @contextmanager
    def writing(self) -> Iterator[State]:
        """The state, which only the holder changes, by `commit`. Others may read meanwhile."""
        with self._writers_turn:
            with self.reading() as state:
                pass
            yield state

    def commit(self, batch: Batch) -> None:
        """Stored first, then visible. Only within `writing`. 42205 when there is no room for it."""
        with self.reading() as state:
            self._check_room(state, batch)
            changes = encode(batch, state.orphaned_by(batch))
        try:
            self._documents.store(changes)
        except BaseException:
            with self._state_lock:
                self._state = None  # it may have been stored nevertheless: read it again
            raise
        with self._state_lock:
            state.apply(batch)

    def _check_room(self, state: State, batch: Batch) -> None:
        growth = state.growth_bytes(batch)
        if self.max_bytes is not None and growth > 0 and state.size_bytes + growth > self.max_bytes:
            raise refusals.not_permitted(
                f"The registry holds {state.size_bytes} bytes of schemas, with metadata, rules "
                f"and configs, and takes at most {self.max_bytes} (max_schemas_bytes in "
                "[registry]). Delete some for good, or raise it."
            )

    def find(self, subject: str, version: int, *, deleted: bool) -> Version | None:
        """A version as references name it."""
        with self.reading() as state:
            return state.find(subject, version, deleted=deleted)

    def _load(self) -> State:
        state = State()
        state.apply(decode(self._documents.load()))
        return state
