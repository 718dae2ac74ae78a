"""A registry, whatever is done to it in whatever order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from duolog.avro.compatibility import Level
from duolog.avro.registry.contexts import beside
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.model import Candidate, Mode
from duolog.avro.registry.port import SchemaReference
from duolog.avro.registry.rules import Metadata
from duolog.avro.registry.service import RegistryService
from duolog.errors import RegistryRefused
from tests.unit.registry_schemas import A, B, C, record

SUBJECTS = st.sampled_from(["s", "t", ":.ctx:s"])
TEXTS = [A, B, C, '"string"', record("a:long"), record("r:R", name="S")]


@contextmanager
def answered(*error_codes: int) -> Iterator[None]:
    """These answers of no are right."""
    try:
        yield
    except RegistryRefused as refusal:
        if refusal.error_code not in error_codes:
            raise


class Sequence(RuleBasedStateMachine):
    """After each call the documents say what the service knows, and ids keep their schema."""

    def __init__(self) -> None:
        super().__init__()
        self.documents = MemoryDocuments()
        self.service = RegistryService(self.documents)
        self.texts: dict[tuple[str, int], str] = {}
        self.largest: dict[str, int] = {}

    @rule(
        subject=SUBJECTS,
        text=st.sampled_from(TEXTS),
        refers=st.booleans(),
        force=st.booleans(),
        given=st.none() | st.tuples(st.integers(1, 4), st.integers(1, 4)),
    )
    def register(
        self, subject: str, text: str, refers: bool, force: bool, given: tuple[int, int] | None
    ) -> None:
        references = (SchemaReference("R", "s", -1),) if refers else ()
        schema_id, version = given or (None, 0)
        candidate = Candidate(text, references=references, id=schema_id, version=version)
        with answered(409, 42201, 42205):
            found = self.service.registration.register(subject, candidate, force=force)
            place = (found.context, found.id)
            assert self.texts.setdefault(place, found.content.text) == found.content.text or given
            self.texts[place] = found.content.text
            if not refers:  # to the latest, which may be another one now
                again = self.service.registration.lookup(subject, candidate)
                assert again.content.text == found.content.text

    @rule(subject=SUBJECTS, version=st.integers(-1, 4), permanent=st.booleans())
    def delete_version(self, subject: str, version: int, permanent: bool) -> None:
        with answered(40401, 40402, 40406, 40407, 42205, 42206):
            self.service.deletion.delete_version(subject, version, permanent=permanent)

    @rule(subject=SUBJECTS, permanent=st.booleans())
    def delete_subject(self, subject: str, permanent: bool) -> None:
        with answered(40401, 40404, 40405, 42205, 42206):
            self.service.deletion.delete_subject(subject, permanent=permanent)

    @rule(
        subject=SUBJECTS | st.just(""),
        mode=st.sampled_from([Mode.READWRITE, Mode.READWRITE, Mode.READONLY, Mode.IMPORT, None]),
        force=st.booleans(),
    )
    def set_mode(self, subject: str, mode: Mode | None, force: bool) -> None:
        with answered(42205, 42206):
            self.service.settings.set_mode(subject, mode, force=force)

    @rule(
        subject=SUBJECTS | st.just(""),
        changes=st.fixed_dictionaries(
            {},
            optional={
                "level": st.sampled_from([*Level, None]),
                "normalize": st.booleans() | st.none(),
                "default_metadata": st.just(Metadata.of(properties={"k": "v"})) | st.none(),
            },
        ),
    )
    def update_config(self, subject: str, changes: dict[str, Any]) -> None:
        with answered(42205):
            self.service.settings.update_config(subject, changes)

    @invariant()
    def documents_say_the_same(self) -> None:
        again = RegistryService(self.documents)
        assert known(again) == known(self.service)
        assert again.size_bytes == self.service.size_bytes

    @invariant()
    def ids_only_grow(self) -> None:
        for context in self.service.contexts():
            largest = self.service.largest_id(context)
            assert largest >= self.largest.get(context, 0)
            self.largest[context] = largest

    @invariant()
    def references_lead_somewhere(self) -> None:
        for version in self.service.all_versions(":*:", deleted=True):
            for reference in version.content.references:
                target = beside(version.subject, reference.subject)
                found = self.service.find_version(target, reference.version, deleted=True)
                assert found.subject == target


def known(service: RegistryService) -> Any:
    """All that can be asked."""
    versions = service.all_versions(":*:", deleted=True)
    settings_of = ("s", "t", ":.ctx:s", "")
    return (
        versions,
        [service.versions_of_id(v.id, v.subject, deleted=True) for v in versions],
        [sorted(service.referrers(v, deleted=True)) for v in versions],
        [service.ids_of_guid(v.content.guid) for v in versions],
        [service.largest_id(context) for context in service.contexts()],
        [service.settings.config_in_scope(subject) for subject in settings_of],
        [service.settings.mode_in_scope(subject) for subject in settings_of],
    )


Sequence.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestSequences = Sequence.TestCase
