"""All of a registry in memory, indexed for its questions. Changed by whole batches."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar
from uuid import UUID

from duolog.avro.registry.contexts import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Qualified, beside
from duolog.avro.registry.model import Config, Content, Mode, Version
from duolog.avro.registry.stored import Batch, Context
from duolog.avro.registry.wire_names import config_json

K = TypeVar("K")
T = TypeVar("T")

_VERSION_BYTES: Final = 512  # of a version beside its content


class State:
    """No lock of its own: `service.py` has it."""

    def __init__(self) -> None:
        self.versions: dict[str, dict[int, Version]] = {}
        self.configs: dict[str, Config] = {}  # "": of all subjects
        self.modes: dict[str, Mode] = {}
        self.contexts: dict[str, Context] = {}
        self._holders: dict[tuple[str, int], dict[tuple[str, int], Version]] = {}
        self._ids: dict[tuple[str, UUID], set[int]] = {}  # more than one only by imports
        self._referrers: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self.size_bytes = 0  # of all contents and configs, with what else a version takes

    def growth_bytes(self, batch: Batch) -> int:
        """How much larger the batch makes it; less than 0 where it takes away."""
        contents = {(each.context, each.id): each.content for each in batch.versions}
        places = {(each.subject, each.version) for each in batch.versions}
        grown = sum(
            content.size_bytes for held, content in contents.items() if held not in self._holders
        )
        grown -= sum(self._content_bytes(*held) for held in self.orphaned_by(batch))
        new = sum(number not in self.versions.get(name, {}) for name, number in places)
        gone = sum((each.subject, each.version) not in places for each in batch.dropped)
        return grown + _VERSION_BYTES * (new - gone) + self._config_growth_bytes(batch.configs)

    def _content_bytes(self, context: str, schema_id: int) -> int:
        content = self.content(context, schema_id)
        return 0 if content is None else content.size_bytes

    def _config_growth_bytes(self, configs: Mapping[str, Config | None]) -> int:
        return sum(
            _config_bytes(config) - _config_bytes(self.configs.get(subject))
            for subject, config in configs.items()
        )

    def apply(self, batch: Batch) -> None:
        self.size_bytes += self.growth_bytes(batch)
        for version in batch.dropped:
            self._drop(version)
        for version in batch.versions:
            self._put(version)
        for context in batch.contexts:
            self.contexts[context.name] = context
        for subject, config in batch.configs.items():
            _set(self.configs, subject, config)
        for subject, mode in batch.modes.items():
            _set(self.modes, subject, mode)

    def _put(self, version: Version) -> None:
        self.versions.setdefault(version.subject, {})[version.version] = version
        holder = (version.context, version.id)
        place = (version.subject, version.version)
        self._holders.setdefault(holder, {})[place] = version
        self._ids.setdefault((version.context, version.content.guid), set()).add(version.id)
        for target in _targets(version):
            self._referrers.setdefault(target, set()).add(holder)

    def _drop(self, version: Version) -> None:
        versions = self.versions[version.subject]
        del versions[version.version]
        if not versions:
            del self.versions[version.subject]
        holder = (version.context, version.id)
        del self._holders[holder][version.subject, version.version]
        if not self._holders[holder]:
            del self._holders[holder]
            _discard(self._ids, (version.context, version.content.guid), version.id)
        for target in _targets(version):
            still = {place for kept in self.holders(*holder) for place in _targets(kept)}
            if target not in still:
                _discard(self._referrers, target, holder)

    def orphaned_by(self, batch: Batch) -> list[tuple[str, int]]:
        """The (context, id) that no version has once the batch is applied."""
        dropped: dict[tuple[str, int], int] = {}
        for version in batch.dropped:
            holder = (version.context, version.id)
            dropped[holder] = dropped.get(holder, 0) + 1
        put = {(version.context, version.id) for version in batch.versions}
        return [
            holder
            for holder, count in dropped.items()
            if holder not in put and count == len(self._holders[holder])
        ]

    # Versions

    def of_subject(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """From the first to the last; with deleted ones if asked for."""
        versions = self.versions.get(subject, {})
        return [versions[n] for n in sorted(versions) if deleted or not versions[n].deleted]

    def latest(self, subject: str) -> Version | None:
        versions = self.of_subject(subject)
        return versions[-1] if versions else None

    def find(self, subject: str, version: int, *, deleted: bool = False) -> Version | None:
        """One version; -1 is the latest."""
        if version == -1:
            return self.latest(subject)
        found = self.versions.get(subject, {}).get(version)
        return found if found is not None and (deleted or not found.deleted) else None

    def find_anywhere(self, subject: str, version: int, *, deleted: bool = False) -> Version | None:
        """Like `find`; a subject without a context is then looked for in the other contexts."""
        for candidate in self.namesakes(subject):
            found = self.find(candidate, version, deleted=deleted)
            if found is not None:
                return found
        return None

    def namesakes(self, subject: str) -> list[str]:
        """The subject, and if it names no context those of its name in the others."""
        named = Qualified.parse(subject)
        if named.context != DEFAULT_CONTEXT:
            return [subject]
        return [subject, *(Qualified(name, named.name).text for name in self.other_contexts())]

    def other_contexts(self) -> list[str]:
        """Listed ones, without the default."""
        return sorted(
            name
            for name, context in self.contexts.items()
            if context.listed and name != DEFAULT_CONTEXT
        )

    def has_subject(self, subject: str, *, deleted: bool) -> bool:
        """Whether the subject has versions. A context: whether any of its subjects has."""
        return next(self.matching(subject, deleted=deleted), None) is not None

    def matching(self, subject: str, *, deleted: bool) -> Iterator[str]:
        """The subject itself, or those of a context that is named without a subject."""
        named = Qualified.parse(subject)
        if not subject or (named.is_context and named.context == GLOBAL_CONTEXT):
            candidates = list(self.versions)
        elif named.is_context:
            candidates = [
                name for name in self.versions if Qualified.parse(name).context == named.context
            ]
        else:
            candidates = [subject]
        return (name for name in candidates if self.of_subject(name, deleted=deleted))

    # Ids

    def content(self, context: str, schema_id: int) -> Content | None:
        for version in self.holders(context, schema_id):
            return version.content
        return None

    def holders(self, context: str, schema_id: int) -> list[Version]:
        """All versions with this id, deleted ones too."""
        return list(self._holders.get((context, schema_id), {}).values())

    def id_of(self, context: str, guid: UUID) -> int | None:
        """The smallest."""
        return min(self._ids.get((context, guid), ()), default=None)

    def next_id(self, context: str) -> int:
        known = self.contexts.get(context)
        return 1 if known is None else known.next_id

    # References

    def referrers(self, subject: str, version: int, *, deleted: bool) -> list[Version]:
        """Versions that refer to this one."""
        return [
            holder
            for context, schema_id in sorted(self._referrers.get((subject, version), ()))
            for holder in self.holders(context, schema_id)
            if (deleted or not holder.deleted) and (subject, version) in _targets(holder)
        ]


def _config_bytes(config: Config | None) -> int:
    return 0 if config is None else sys.getsizeof(json.dumps(config_json(config)))


def _targets(version: Version) -> set[tuple[str, int]]:
    return {
        (beside(version.subject, reference.subject), reference.version)
        for reference in version.content.references
    }


def _discard(sets: dict[K, set[T]], key: K, member: T) -> None:
    sets[key].discard(member)
    if not sets[key]:
        del sets[key]


def _set(values: dict[str, T], subject: str, value: T | None) -> None:
    if value is None:
        values.pop(subject, None)
    else:
        values[subject] = value
