"""Finding, checking and registering schemas under subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from duolog.avro.compatibility import Level
from duolog.avro.registry import refusals
from duolog.avro.registry.compatibility import broken_promises
from duolog.avro.registry.contexts import (
    context_of,
    context_prefix,
    is_valid_subject,
    normalized,
)
from duolog.avro.registry.model import (
    MAX_NUMBER,
    Candidate,
    Config,
    Content,
    Mode,
    Version,
)
from duolog.avro.registry.parsing import Parsed, SchemaReader
from duolog.avro.registry.rules import (
    Metadata,
    check_rules,
    merged_metadata,
    merged_rules,
)
from duolog.avro.registry.settings import Settings, described
from duolog.avro.registry.state import State
from duolog.avro.registry.store import Store
from duolog.avro.registry.stored import Batch, Context


class Registration:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._reader = SchemaReader()

    def register(
        self, subject: str, candidate: Candidate, *, normalize: bool = False, force: bool = False
    ) -> Version:
        """The version that is this schema: one that was there, or a new one.

        `force` skips the compatibility check.
        """
        check_rules(candidate.rules)
        if not is_valid_subject(subject):
            raise refusals.invalid_subject(subject)
        subject = normalized(subject)
        config = self._settings.config_in_scope(subject)
        normalize = normalize or bool(config.normalize)
        if not config.adds_to_schemas:
            # Known schemas are answered in any mode: serializers register at every start.
            known = self._known_already(subject, candidate, normalize=normalize)
            if known is not None:
                return known
        with self._store.writing() as state:
            return self._register(state, subject, candidate, normalize=normalize, force=force)

    def lookup(
        self, subject: str, candidate: Candidate, *, normalize: bool = False, deleted: bool = False
    ) -> Version:
        """The version of the subject that is this schema; 40401, 40403.

        A subject without a context is then looked for in the other contexts.
        """
        subject = normalized(subject)
        normalize = normalize or bool(self._settings.config_in_scope(subject).normalize)
        with self._store.reading() as state:
            names = state.namesakes(subject)
        for name in names:
            found = self._lookup(name, candidate, normalize=normalize, deleted=deleted)
            if found is not None:
                return found
        with self._store.reading() as state:
            if state.has_subject(subject, deleted=deleted):
                raise refusals.schema_not_found()
        raise refusals.subject_not_found(subject)

    def check(
        self,
        subject: str,
        candidate: Candidate,
        previous: Sequence[Version],
        *,
        normalize: bool = False,
    ) -> list[str]:
        """What keeps the schema from following these versions. Empty: nothing."""
        subject = normalized(subject)
        config = self._settings.config_in_scope(subject)
        if candidate.is_empty:
            raise refusals.invalid_schema("Empty schema")
        parsed = self._parse(
            subject,
            candidate,
            normalize=normalize or bool(config.normalize),
            strict=config.validate_new_schemas is not False,
        )
        return self._broken(config, parsed, candidate.metadata, previous)

    def resolved_text(self, version: Version) -> str:
        """The schema with all that it refers to."""
        return self._parsed(version).resolved_text

    # Finding

    def _known_already(
        self, subject: str, candidate: Candidate, *, normalize: bool
    ) -> Version | None:
        wants_latest = candidate.version == -1
        found = self._find(
            subject, candidate, normalize=normalize, deleted=False, latest_only=wants_latest
        )
        if found is None:
            return None
        if candidate.version == 0 or wants_latest:
            return found if candidate.id in (None, found.id) else None
        if found.id != candidate.id:
            return None
        if found.version == candidate.version:
            return found
        with self._store.reading() as state:
            older = state.find(subject, candidate.version)
        return older if older is not None and older.content == found.content else None

    def _lookup(
        self, subject: str, candidate: Candidate, *, normalize: bool, deleted: bool
    ) -> Version | None:
        found = self._find(subject, candidate, normalize=normalize, deleted=deleted)
        if found is not None:
            return found
        with self._store.reading() as state:
            latest = state.latest(subject)
        if latest is None:
            return None
        # Registering would have given it the metadata and rules of the version before.
        config = self._settings.config_in_scope(subject)
        filled = _with_inherited(config, candidate, latest, None)
        if filled == candidate:
            return None
        return self._find(subject, filled, normalize=normalize, deleted=deleted)

    def _find(
        self,
        subject: str,
        candidate: Candidate,
        *,
        normalize: bool,
        deleted: bool,
        latest_only: bool = False,
    ) -> Version | None:
        if candidate.is_empty:
            return None
        parsed = self._parse(subject, candidate, normalize=normalize, strict=False)
        guid = _content(parsed, candidate).guid
        with self._store.reading() as state:
            versions = state.of_subject(subject, deleted=deleted)
            latest = state.latest(subject)
        if latest_only:
            versions = [] if latest is None else [latest]
        else:
            for version in reversed(versions):
                if version.content.guid == guid:
                    return version
        for version in reversed(versions):
            if self._is_same(parsed, candidate, version):
                return version
        return None

    def _is_same(self, parsed: Parsed, candidate: Candidate, version: Version) -> bool:
        """Also one that has other references, or none, but says the same."""
        content = version.content
        stands_alone = not parsed.references and bool(content.references)
        return (
            (stands_alone or parsed.references == content.references)
            and candidate.rules == content.rules
            and _same_metadata(candidate.metadata, version)
            and parsed.is_equivalent(self._parsed(version))
        )

    # Registering

    def _register(
        self, state: State, subject: str, candidate: Candidate, *, normalize: bool, force: bool
    ) -> Version:
        mode = self._settings.mode_in_scope(subject)
        _check_mode(mode, subject, candidate)
        imports = mode is Mode.IMPORT
        config = self._settings.config_in_scope(subject)
        versions = state.of_subject(subject, deleted=True)
        present = [version for version in versions if not version.deleted]
        next_version = versions[-1].version + 1 if versions else 1
        if not imports:
            latest = present[-1] if present else None
            if latest is not None and candidate.is_empty:
                candidate = _with_schema_of(candidate, latest)
            candidate = _with_inherited(config, candidate, latest, next_version)
        if candidate.is_empty:
            raise refusals.invalid_schema("Empty schema")
        strict = candidate.id is None and config.validate_new_schemas is not False
        parsed = self._parse(subject, candidate, normalize=normalize, strict=strict)
        content = _content(parsed, candidate)
        context = context_of(subject)

        schema_id = candidate.id
        known_id = state.id_of(context, content.guid)
        if known_id is not None and schema_id in (None, known_id):
            schema_id = known_id
        if candidate.version == 0:
            for version in reversed(present):
                if schema_id in (None, version.id) and (
                    version.content == content or self._is_same(parsed, candidate, version)
                ):
                    return version
        if not imports and not force:
            broken = self._broken(
                config, parsed, candidate.metadata, present, new_version=next_version
            )
            if broken:
                raise refusals.incompatible(subject, f"[{', '.join(broken)}]")

        number = _number(candidate, next_version, imports=imports)
        if schema_id is None:
            schema_id = state.next_id(context)
            if schema_id > MAX_NUMBER:
                raise refusals.storage_failed(
                    f"Context '{context}' has no ids left: {MAX_NUMBER} is the last."
                )
        elif state.content(context, schema_id) not in (None, content):
            raise refusals.not_permitted(
                f"Overwrite new schema with id {schema_id} in context {context_prefix(context)} "
                "is not permitted."
            )
        new = Version(subject, number, schema_id, content)
        batch = Batch(versions=[new], contexts=_contexts_after(state, context, schema_id))
        for version in versions:
            if version.version == number:
                if version.content != content:
                    raise refusals.not_permitted(
                        f"Overwriting version {number} of subject '{subject}' is not permitted."
                    )
                batch.dropped.append(version)  # it was deleted, or gets another id
            elif (
                version.deleted
                and version.id == schema_id
                and version.version < number
                and not state.referrers(subject, version.version, deleted=True)
            ):
                batch.dropped.append(version)  # the new one stands for it
        self._store.commit(batch)
        return new

    def _broken(
        self,
        config: Config,
        parsed: Parsed,
        metadata: Metadata | None,
        previous: Sequence[Version],
        *,
        new_version: int | None = None,
    ) -> list[str]:
        group = config.compatibility_group
        if group is not None:
            own = _property(metadata, group)
            previous = [
                version for version in previous if _property(version.content.metadata, group) == own
            ]
        level = config.level or Level.BACKWARD
        return broken_promises(level, parsed, previous, self._parsed, new_version=new_version)

    # Parsing

    def _parse(
        self, subject: str, candidate: Candidate, *, normalize: bool, strict: bool
    ) -> Parsed:
        imports = self._settings.mode_in_scope(subject) is Mode.IMPORT
        return self._reader.candidate(
            subject,
            candidate,
            lambda name, version: self._store.find(name, version, deleted=not strict),
            normalize=normalize and not imports,
            strict=strict,
        )

    def _parsed(self, version: Version) -> Parsed:
        return self._reader.stored(
            version, lambda name, number: self._store.find(name, number, deleted=True)
        )


def _check_mode(mode: Mode, subject: str, candidate: Candidate) -> None:
    if mode.is_read_only:
        raise refusals.not_permitted(f"{described(subject)} is in read-only mode")
    if candidate.id is not None and mode is not Mode.IMPORT:
        raise refusals.not_permitted(f"{described(subject)} is not in import mode")
    if candidate.id is None and mode is not Mode.READWRITE:
        raise refusals.not_permitted(f"{described(subject)} is not in read-write mode")


def _with_schema_of(candidate: Candidate, latest: Version) -> Candidate:
    """Metadata and rules can be sent alone: for the schema as it is."""
    schema = latest.content.schema
    return replace(candidate, text=schema.text, type=schema.type, references=schema.references)


def _with_inherited(
    config: Config, candidate: Candidate, latest: Version | None, next_version: int | None
) -> Candidate:
    """With what the config and the version before add to it.

    `next_version` is the number that it is going to have, None when it is only looked up.
    """
    metadata, rules = candidate.metadata, candidate.rules
    if latest is not None:
        metadata = latest.content.metadata if metadata is None else metadata
        rules = latest.content.rules if rules is None else rules
    metadata = merged_metadata(config.default_metadata, metadata)
    metadata = merged_metadata(metadata, config.override_metadata)
    rules = merged_rules(merged_rules(config.default_rules, rules), config.override_rules)
    names_version = metadata is not None and metadata.names_version
    if next_version is not None and (candidate.version != 0 or names_version):
        metadata = (metadata or Metadata()).with_version(next_version)
    return replace(candidate, metadata=metadata, rules=rules)


def _content(parsed: Parsed, candidate: Candidate) -> Content:
    return Content(
        parsed.text, candidate.type, parsed.references, candidate.metadata, candidate.rules
    )


def _same_metadata(own: Metadata | None, version: Version) -> bool:
    """Whether metadata is that of a version, but for the version that only one of them names."""
    stored = version.content.metadata
    own_number = None if own is None else own.confluent_version
    stored_number = None if stored is None else stored.confluent_version
    if own_number is None and stored is not None and stored_number is not None:
        return (own or Metadata()) == stored.without_version()
    if own is not None and own_number is not None and stored_number is None:
        return own_number == version.version and own.without_version() == (stored or Metadata())
    return own == stored


def _number(candidate: Candidate, next_version: int, *, imports: bool) -> int:
    number = candidate.version if candidate.version > 0 else next_version
    if number != next_version and not imports:
        raise refusals.invalid_schema("Version is not one more than previous version")
    if number > MAX_NUMBER:
        raise refusals.invalid_version(str(number))
    return number


def _contexts_after(state: State, context: str, schema_id: int) -> list[Context]:
    known = state.contexts.get(context)
    after = Context(context, max(state.next_id(context), schema_id + 1))
    return [] if known == after else [after]


def _property(metadata: Metadata | None, name: str) -> str | None:
    return None if metadata is None else dict(metadata.properties).get(name)
