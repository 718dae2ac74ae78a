"""Deleting versions, subjects and contexts: first softly, then for good.

What is softly deleted is not listed any more, but still found by its id, and its number is not
used again. What others refer to stays.
"""

from __future__ import annotations

from dataclasses import replace

from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import context_of, normalized
from duolog.avro.registry.model import Version
from duolog.avro.registry.settings import Settings
from duolog.avro.registry.state import State
from duolog.avro.registry.store import Store
from duolog.avro.registry.stored import Batch


class Deletion:
    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """The number of the deleted version; -1 deletes the latest."""
        subject = normalized(subject)
        with self._store.writing() as state:
            found = state.find(subject, version, deleted=True)
            if found is None:
                if state.has_subject(subject, deleted=True):
                    raise refusals.version_not_found(version)
                raise refusals.subject_not_found(subject)
            if found.deleted and not permanent:
                raise refusals.version_soft_deleted(subject, found.version)
            self._settings.refuse_read_only(state, subject)
            if state.referrers(subject, found.version, deleted=permanent):
                raise refusals.referred_to(subject, found.version)
            if permanent and not found.deleted:
                raise refusals.version_not_soft_deleted(subject, found.version)
            self._store.commit(_batch(state, [found], permanent=permanent))
            return found.version

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """The numbers of the deleted versions."""
        subject = normalized(subject)
        with self._store.writing() as state:
            if not state.of_subject(subject, deleted=True):
                raise refusals.subject_not_found(subject)
            if not permanent and not state.of_subject(subject):
                raise refusals.subject_soft_deleted(subject)
            self._settings.refuse_read_only(state, subject)
            found = state.of_subject(subject, deleted=permanent)
            for version in found:
                referrers = state.referrers(subject, version.version, deleted=permanent)
                if any(referrer.subject != subject for referrer in referrers):
                    raise refusals.referred_to(subject, version.version)
                if permanent and not version.deleted:
                    raise refusals.subject_not_soft_deleted(subject)
            self._store.commit(_batch(state, found, permanent=permanent))
            return [version.version for version in found]

    def delete_context(self, context: str) -> None:
        """42211 unless all its subjects are gone for good. Its ids are not used again."""
        with self._store.writing() as state:
            name = context_of(normalized(context))
            if state.has_subject(f":{name}:", deleted=True):
                raise refusals.context_not_empty(normalized(context))
            known = state.contexts.get(name)
            if known is not None and known.listed:
                self._store.commit(Batch(contexts=[replace(known, listed=False)]))


def _batch(state: State, versions: list[Version], *, permanent: bool) -> Batch:
    if not permanent:
        return Batch(versions=[replace(version, deleted=True) for version in versions])
    batch = Batch(dropped=versions)
    subject = versions[0].subject
    if len(versions) == len(state.of_subject(subject, deleted=True)):
        # A subject that is gone for good takes its settings along.
        if subject in state.configs:
            batch.configs[subject] = None
        if subject in state.modes:
            batch.modes[subject] = None
    return batch
