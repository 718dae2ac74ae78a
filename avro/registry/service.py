"""A schema registry without HTTP. Safe for threads.

    registration.py   find, check and register schemas    settings.py   configs and modes
    deletion.py       softly, then for good               store.py      what is known and stored

Rules, ids and errors are Confluent's. Answers of no are RegistryRefused with Confluent's error
codes (refusals.py); the calls of `Registry` raise the errors that it names instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from uuid import UUID

from duolog.avro.compatibility import Level
from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import (
    DEFAULT_CONTEXT,
    Qualified,
    begins_with,
    context_of,
    normalized,
)
from duolog.avro.registry.deletion import Deletion
from duolog.avro.registry.documents import Documents
from duolog.avro.registry.model import MAX_NUMBER, Candidate, Version
from duolog.avro.registry.port import RegisteredSchema, SchemaText
from duolog.avro.registry.registration import Registration
from duolog.avro.registry.settings import Settings
from duolog.avro.registry.state import State
from duolog.avro.registry.store import Store
from duolog.errors import RegistryRefused


class Listed(Enum):
    """Which of the deleted a listing has."""

    PRESENT = "present"
    ALL = "all"
    DELETED = "deleted"


class RegistryService:
    """All that a registry is asked."""

    def __init__(self, documents: Documents, *, default_level: Level = Level.BACKWARD) -> None:
        self._store = Store(documents)
        self.settings = Settings(self._store, default_level)
        self.registration = Registration(self._store, self.settings)
        self.deletion = Deletion(self._store, self.settings)

    def limit(self, max_bytes: int) -> None:
        """Take no more schemas than come to so many bytes in memory; those that are there stay."""
        self._store.max_bytes = max_bytes

    @property
    def size_bytes(self) -> int:
        """About what its schemas take of memory."""
        with self._store.reading() as state:
            return state.size_bytes

    # What serializers ask

    def register(self, subject: str, schema: SchemaText, *, normalize: bool = False) -> int:
        with _named_errors():
            return self.registration.register(subject, _candidate(schema), normalize=normalize).id

    def lookup(
        self, subject: str, schema: SchemaText, *, normalize: bool = False
    ) -> RegisteredSchema:
        with _named_errors():
            return self.registration.lookup(
                subject, _candidate(schema), normalize=normalize
            ).registered

    def latest(self, subject: str) -> RegisteredSchema:
        with _named_errors():
            return self.find_version(subject, -1).registered

    def version(self, subject: str, version: int) -> RegisteredSchema:
        with _named_errors():
            return self.find_version(subject, version, deleted=True).registered

    def schema_by_id(self, schema_id: int) -> SchemaText:
        with _named_errors():
            return self.find_by_id(schema_id).content.schema

    def schema_by_guid(self, guid: UUID) -> SchemaText:
        with _named_errors():
            return self.find_by_guid(guid).content.schema

    # Subjects and versions

    def subjects(self, prefix: str, listed: Listed = Listed.PRESENT) -> list[str]:
        """Sorted. A subject counts as deleted when all its versions are."""
        with self._store.reading() as state:
            return sorted(
                subject
                for subject in state.versions
                if begins_with(subject, prefix)
                and _is_listed(deleted=not state.of_subject(subject), listed=listed)
            )

    def versions(self, subject: str, listed: Listed = Listed.PRESENT) -> list[Version]:
        """From the first on; 40401 for a subject that has none of any kind asked for."""
        subject = normalized(subject)
        with self._store.reading() as state:
            if not state.has_subject(subject, deleted=listed is not Listed.PRESENT):
                raise refusals.subject_not_found(subject)
            return [
                version
                for version in state.of_subject(subject, deleted=True)
                if _is_listed(deleted=version.deleted, listed=listed)
            ]

    def find_version(self, subject: str, version: int, *, deleted: bool = False) -> Version:
        """-1 is the latest. 40401, 40402, and 42202 for what is no version's number."""
        if version != -1 and not 1 <= version <= MAX_NUMBER:
            raise refusals.invalid_version(str(version))
        subject = normalized(subject)
        with self._store.reading() as state:
            found = state.find_anywhere(subject, version, deleted=deleted)
            if found is not None:
                return found
            if state.has_subject(subject, deleted=deleted):
                raise refusals.version_not_found(version)
        raise refusals.subject_not_found(subject)

    def all_versions(
        self, prefix: str, *, deleted: bool = False, latest_only: bool = False
    ) -> list[Version]:
        """Of the subjects with this prefix, in order."""
        with self._store.reading() as state:
            found: list[Version] = []
            for subject in sorted(state.versions):
                if begins_with(subject, prefix):
                    versions = state.of_subject(subject, deleted=deleted)
                    found += versions[-1:] if latest_only else versions
            return found

    def latest_with_metadata(
        self, subject: str, properties: dict[str, str], *, deleted: bool = False
    ) -> Version:
        """The latest version whose metadata has these properties; 40401, 40403."""
        subject = normalized(subject)
        with self._store.reading() as state:
            for version in reversed(state.of_subject(subject, deleted=deleted)):
                metadata = version.content.metadata
                if metadata is not None and properties.items() <= dict(metadata.properties).items():
                    return version
            if state.has_subject(subject, deleted=deleted):
                raise refusals.schema_not_found()
        raise refusals.subject_not_found(subject)

    def referrers(self, version: Version, *, deleted: bool = False) -> list[int]:
        """Ids of the schemas that refer to this version."""
        with self._store.reading() as state:
            found = state.referrers(version.subject, version.version, deleted=deleted)
        return sorted({referrer.id for referrer in found})

    def to_check_against(self, subject: str, version: int | None) -> list[Version]:
        """The versions that a compatibility check is about: one, or None for all."""
        subject = normalized(subject)
        with self._store.reading() as state:
            if version is None:
                return state.of_subject(subject)
            found = state.find(subject, version)
        if found is None and version != -1:
            raise refusals.version_not_found(version)
        return [] if found is None else [found]

    # Ids

    def find_by_id(self, schema_id: int, subject: str = "") -> Version:
        """A version with this id, deleted or not; of the subject or its context; 40403."""
        with self._store.reading() as state:
            found = _holder(state, schema_id, normalized(subject))
        if found is None:
            raise refusals.schema_not_found(schema_id)
        return found

    def find_by_guid(self, guid: UUID) -> Version:
        """40403 when no context has it."""
        for context, schema_id in self.ids_of_guid(guid):
            return self.find_by_id(schema_id, Qualified(context, "").text)
        raise refusals.schema_not_found(str(guid))

    def ids_of_guid(self, guid: UUID) -> list[tuple[str, int]]:
        """Context and id, of each context that has it."""
        with self._store.reading() as state:
            found = [
                (context, state.id_of(context, guid))
                for context in (DEFAULT_CONTEXT, *state.other_contexts())
            ]
        return [(context, schema_id) for context, schema_id in found if schema_id is not None]

    def versions_of_id(
        self, schema_id: int, subject: str = "", *, deleted: bool = False
    ) -> list[Version]:
        """One of each subject that has the id, the last registered; 40403."""
        with self._store.reading() as state:
            found = _holder(state, schema_id, normalized(subject))
            if found is None:
                raise refusals.schema_not_found()
            last: dict[str, Version] = {}
            for version in state.holders(found.context, schema_id):
                known = last.get(version.subject)
                if known is None or known.version < version.version:
                    last[version.subject] = version
        return [last[name] for name in sorted(last) if deleted or not last[name].deleted]

    def largest_id(self, context: str) -> int:
        """The last that was given in this context."""
        with self._store.reading() as state:
            return state.next_id(context) - 1

    def contexts(self) -> list[str]:
        with self._store.reading() as state:
            return [DEFAULT_CONTEXT, *state.other_contexts()]


def _candidate(schema: SchemaText) -> Candidate:
    return Candidate(schema.text, schema.type, schema.references)


def _is_listed(*, deleted: bool, listed: Listed) -> bool:
    return listed is Listed.ALL or deleted is (listed is Listed.DELETED)


def _holder(state: State, schema_id: int, subject: str) -> Version | None:
    """Of the subject, else of its namesakes in other contexts, else of its context."""
    named = Qualified.parse(subject)
    if not named.is_context:
        for name in state.namesakes(subject):
            own = [v for v in state.holders(context_of(name), schema_id) if v.subject == name]
            if own:
                return max(own, key=lambda version: version.version)
        if named.context != DEFAULT_CONTEXT:
            return None
    holders = state.holders(named.context, schema_id)
    return holders[0] if holders else None


@contextmanager
def _named_errors() -> Iterator[None]:
    try:
        yield
    except RegistryRefused as refusal:
        error = refusals.named(refusal)
        if error is refusal:
            raise
        raise error from refusal
