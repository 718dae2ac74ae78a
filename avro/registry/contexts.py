"""Subjects in contexts: worlds of their own inside one registry, each with ids from 1.

orders-value              in the default context, "."
:.:orders-value           the same
:.staging:orders-value    in context ".staging"
:.staging:                that context as a whole: its settings
:.__GLOBAL:               settings above all contexts
:*:                       as a prefix: subjects of every context
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from unicodedata import category

from duolog.avro.registry import refusals

DEFAULT_CONTEXT: Final = "."
GLOBAL_CONTEXT: Final = ".__GLOBAL"
EVERY_CONTEXT: Final = ":*:"

_RESERVED_NAMES: Final = ("__GLOBAL", "__EMPTY")


@dataclass(frozen=True, slots=True)
class Qualified:
    """A subject's name, or a context when the name is empty."""

    context: str
    name: str

    @classmethod
    def parse(cls, subject: str) -> Qualified:
        if subject.startswith(EVERY_CONTEXT):
            return cls("*", subject[len(EVERY_CONTEXT) :])
        if subject.startswith(":."):
            context, _, name = subject[1:].partition(":")
            return cls(context, name)
        return cls(DEFAULT_CONTEXT, subject)

    @property
    def text(self) -> str:
        """As it is written in answers, and stored."""
        return context_prefix(self.context) + self.name

    @property
    def is_default_context(self) -> bool:
        return self.context == DEFAULT_CONTEXT and not self.name

    @property
    def is_context(self) -> bool:
        return not self.name


def context_prefix(context: str) -> str:
    """What the subjects of a context begin with."""
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def normalized(subject: str) -> str:
    """One spelling: the default context is not written."""
    return Qualified.parse(subject).text


def context_of(subject: str) -> str:
    return Qualified.parse(subject).context


def beside(parent: str, subject: str) -> str:
    """A subject as `parent` refers to it: in the parent's context, unless it names one itself."""
    named = Qualified.parse(subject)
    if named.context == DEFAULT_CONTEXT:
        return Qualified(context_of(parent), named.name).text
    return named.text


def within(context: str, subject: str) -> str:
    """A subject as a path below /contexts/{context} names it."""
    if subject.startswith((":.", EVERY_CONTEXT)):
        return subject
    bare = context.removeprefix(":").removesuffix(":")
    if ":" in bare:
        raise refusals.invalid_context(bare)
    return context_prefix(bare if bare.startswith(".") else f".{bare}") + subject


def is_valid_subject(subject: str, *, for_settings: bool = False) -> bool:
    """Whether something can be stored under this name."""
    if any(category(character) in ("Cc", "Cs") for character in subject):
        return False
    named = Qualified.parse(subject)
    if named.name in _RESERVED_NAMES:
        return False
    return for_settings or bool(named.name and named.context != GLOBAL_CONTEXT)


def begins_with(subject: str, prefix: str) -> bool:
    """Whether a listing with this prefix shows the subject."""
    named, wanted = Qualified.parse(subject), Qualified.parse(prefix)
    if wanted.context == "*":
        return named.name.startswith(wanted.name)
    if prefix.startswith(":.") and ":" not in prefix[1:]:
        return named.context.startswith(wanted.context)
    return named.context == wanted.context and named.name.startswith(wanted.name)
