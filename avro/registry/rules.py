"""Metadata and rules that come with schemas. Kept and merged, never carried out here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from duolog.avro.registry import refusals

CONFLUENT_VERSION: Final = "confluent:version"

_MAX_NAME_CHARACTERS: Final = 256


@dataclass(frozen=True, slots=True)
class Metadata:
    """Sorted, so that the same metadata is equal however it was written."""

    tags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    sensitive: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        tags: Mapping[str, Iterable[str]] | None = None,
        properties: Mapping[str, str] | None = None,
        sensitive: Iterable[str] | None = None,
    ) -> Metadata:
        return cls(
            tuple(sorted((name, tuple(sorted(set(of)))) for name, of in (tags or {}).items())),
            tuple(sorted((properties or {}).items())),
            tuple(sorted(set(sensitive or ()))),
        )

    @property
    def confluent_version(self) -> int | None:
        """The version that the schema says of itself."""
        written = dict(self.properties).get(CONFLUENT_VERSION, "")
        return int(written) if written.removeprefix("-").isdecimal() else None

    @property
    def names_version(self) -> bool:
        return CONFLUENT_VERSION in dict(self.properties)

    def with_version(self, version: int) -> Metadata:
        properties = {**dict(self.properties), CONFLUENT_VERSION: str(version)}
        return replace(self, properties=tuple(sorted(properties.items())))

    def without_version(self) -> Metadata:
        kept = tuple(item for item in self.properties if item[0] != CONFLUENT_VERSION)
        return replace(self, properties=kept)

    def words(self) -> Iterator[str]:
        """All that a guid depends on, in order."""
        for tag, subjects in self.tags:
            yield tag
            yield from subjects
        for name, value in self.properties:
            yield name
            yield value
        yield from self.sensitive


class RuleKind(StrEnum):
    TRANSFORM = "TRANSFORM"
    CONDITION = "CONDITION"


class RuleMode(StrEnum):
    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    WRITE = "WRITE"
    READ = "READ"
    WRITEREAD = "WRITEREAD"

    @property
    def migrates(self) -> bool:
        return self in (RuleMode.UPGRADE, RuleMode.DOWNGRADE, RuleMode.UPDOWN)


@dataclass(frozen=True, slots=True)
class Rule:
    name: str | None = None
    doc: str | None = None
    kind: RuleKind = RuleKind.TRANSFORM
    mode: RuleMode = RuleMode.WRITEREAD
    type: str | None = None
    tags: tuple[str, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool = False

    def words(self) -> Iterator[str]:
        yield self.name or ""
        yield self.doc or ""
        yield self.kind.value
        yield self.mode.value
        yield self.type or ""
        yield from self.tags
        for name, value in self.params:
            yield name
            yield value
        yield self.expr or ""
        yield self.on_success or ""
        yield self.on_failure or ""
        yield "\x01" if self.disabled else ""


@dataclass(frozen=True, slots=True)
class RuleSet:
    migration: tuple[Rule, ...] = ()
    domain: tuple[Rule, ...] = ()
    encoding: tuple[Rule, ...] = ()
    enable_at: str | None = None

    def words(self) -> Iterator[str]:
        for rule in (*self.migration, *self.domain, *self.encoding):
            yield from rule.words()
        yield self.enable_at or ""


def check_rules(rules: RuleSet | None) -> None:
    """Raises 42210 for rules that nobody could carry out."""
    if rules is None:
        return
    names: set[str] = set()
    for kind, members in (
        ("Migration", rules.migration),
        ("Domain", rules.domain),
        ("Encoding", rules.encoding),
    ):
        for rule in members:
            if rule.name in names:
                raise refusals.invalid_rules(f"Found rule with duplicate name '{rule.name}'")
            _check_rule(rule)
            names.add(rule.name or "")
            if rule.mode.migrates is not (kind == "Migration"):
                allowed = (
                    "UPGRADE, DOWNGRADE, UPDOWN"
                    if kind == "Migration"
                    else "WRITE, READ, WRITEREAD"
                )
                raise refusals.invalid_rules(f"{kind} rules can only be {allowed}")


def _check_rule(rule: Rule) -> None:
    if rule.name is None:
        raise refusals.invalid_rules("Missing rule name")
    if not rule.name:
        raise refusals.invalid_rules("Empty rule name")
    if len(rule.name) > _MAX_NAME_CHARACTERS:
        raise refusals.invalid_rules("Rule name too long")
    if not (rule.name[0].isalpha() or rule.name[0] == "_"):
        raise refusals.invalid_rules(f"Illegal initial character in rule name: {rule.name}")
    if not all(character.isalnum() or character in "_-" for character in rule.name):
        raise refusals.invalid_rules(f"Illegal character in rule name: {rule.name}")
    if rule.type is None:
        raise refusals.invalid_rules("Missing rule type")
    if rule.mode not in (RuleMode.WRITEREAD, RuleMode.UPDOWN):
        for action in (rule.on_success, rule.on_failure):
            if action is not None and "," in action:
                raise refusals.invalid_rules(
                    "Multiple actions only valid with WRITEREAD and UPDOWN"
                )


def merged_metadata(old: Metadata | None, new: Metadata | None) -> Metadata | None:
    """`new` goes before `old`, entry by entry."""
    if old is None or new is None:
        return new if old is None else old
    return Metadata.of(
        {**dict(old.tags), **dict(new.tags)},
        {**dict(old.properties), **dict(new.properties)},
        (*old.sensitive, *new.sensitive),
    )


def merged_rules(old: RuleSet | None, new: RuleSet | None) -> RuleSet | None:
    """`new` goes before `old`, rule by rule."""
    if old is None or new is None:
        return new if old is None else old
    return RuleSet(
        _merged(old.migration, new.migration),
        _merged(old.domain, new.domain),
        _merged(old.encoding, new.encoding),
        new.enable_at or old.enable_at,
    )


def _merged(old: tuple[Rule, ...], new: tuple[Rule, ...]) -> tuple[Rule, ...]:
    names = {rule.name for rule in new}
    return (*(rule for rule in old if rule.name not in names), *new)
