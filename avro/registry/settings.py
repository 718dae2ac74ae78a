"""Configs and modes: of a subject, a context, or all.

A subject has its own, or its context's, or those of `:.__GLOBAL:`, or what a new registry has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from duolog.avro.compatibility import Level
from duolog.avro.registry import refusals
from duolog.avro.registry.contexts import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    Qualified,
    beside,
    context_of,
    context_prefix,
    is_valid_subject,
    normalized,
)
from duolog.avro.registry.model import SETTINGS, Config, Mode
from duolog.avro.registry.rules import check_rules
from duolog.avro.registry.state import State
from duolog.avro.registry.store import Store
from duolog.avro.registry.stored import Batch

GLOBAL: Final = ""
"""In place of a subject: all of them."""


class Settings:
    def __init__(self, store: Store, default_level: Level = Level.BACKWARD) -> None:
        self._store = store
        self._default = Config(level=default_level)

    # Config

    def config(self, subject: str = GLOBAL) -> Config:
        """What the subject itself has; 40408 when that is nothing."""
        place = _place(subject)
        with self._store.reading() as state:
            if place not in state.configs and place and place != _ABOVE_ALL:
                raise refusals.no_config(place)
            return self._own(state, place)

    def config_in_scope(self, subject: str = GLOBAL) -> Config:
        """What goes for the subject."""
        with self._store.reading() as state:
            return self._filled(state, _place(subject))

    def _filled(self, state: State, place: str) -> Config:
        found = Config()
        for scope in _scopes(place):
            if scope in state.configs:
                own = state.configs[scope]
                found = own if found == Config() else found.over(own)
        return found.over(self._default)

    def _own(self, state: State, place: str) -> Config:
        own = state.configs.get(place, Config())
        return own if own.level else replace(own, level=self._filled(state, place).level)

    def update_config(self, subject: str, changes: dict[str, Any]) -> Config:
        """Set what is in `changes`, by the names of `Config`; None takes a setting away."""
        unknown = changes.keys() - set(SETTINGS)
        if unknown:
            raise TypeError(f"Config has no {', '.join(sorted(unknown))}.")
        place = _settable(subject)
        for name in ("default_rules", "override_rules"):
            check_rules(changes.get(name))
        with self._store.writing() as state:
            self.refuse_read_only(state, place)
            config = replace(state.configs.get(place, Config()), **changes)
            self._store.commit(Batch(configs={place: config}))
            return config

    def delete_config(self, subject: str = GLOBAL) -> Config:
        """The config that was there; 40401 when there was none."""
        place = _place(subject)
        with self._store.writing() as state:
            if place not in state.configs and place and place != _ABOVE_ALL:
                raise refusals.subject_not_found(place)
            self.refuse_read_only(state, place)
            config = self._own(state, place)
            self._store.commit(Batch(configs={place: None}))
            return config

    def aliased(self, subject: str) -> str:
        """The subject that this one is an alias of, or itself."""
        with self._store.reading() as state:
            config = state.configs.get(_place(subject))
        return beside(subject, config.alias) if config is not None and config.alias else subject

    # Mode

    def mode(self, subject: str = GLOBAL) -> Mode:
        """What the subject itself has; 40409 when that is nothing."""
        place = _place(subject)
        with self._store.reading() as state:
            found = state.modes.get(place)
        if found is None and place and place != _ABOVE_ALL:
            raise refusals.no_mode(place)
        return found or Mode.READWRITE

    def mode_in_scope(self, subject: str = GLOBAL) -> Mode:
        with self._store.reading() as state:
            return _mode_of(state, _place(subject))

    def set_mode(self, subject: str, mode: Mode | None, *, force: bool = False) -> None:
        """None takes the mode away.

        Import mode is for what has no versions; what was deleted there is then gone for good.
        """
        place = _settable(subject)
        with self._store.writing() as state:
            batch = Batch(modes={place: mode})
            if mode is Mode.IMPORT and _mode_of(state, place) is not Mode.IMPORT and not force:
                if state.has_subject(place, deleted=False):
                    raise refusals.not_permitted("Cannot import since found existing subjects")
                for name in state.matching(place, deleted=True):
                    for version in state.of_subject(name, deleted=True):
                        if state.referrers(name, version.version, deleted=True):
                            raise refusals.referred_to(name, version.version)
                        batch.dropped.append(version)
            self._store.commit(batch)

    def delete_mode(self, subject: str = GLOBAL, *, recursive: bool = False) -> Mode | None:
        """The mode that was there; 40401 when there was none, unless it is recursive."""
        place = _place(subject)
        with self._store.writing() as state:
            deleted = state.modes.get(place)
            if deleted is None and (not place or place == _ABOVE_ALL):
                deleted = Mode.READWRITE
            if deleted is None and not recursive:
                raise refusals.subject_not_found(place)
            batch = Batch(modes={place: None})
            if recursive and Qualified.parse(place).is_context:
                context = context_of(place)
                batch.modes |= {name: None for name in state.modes if context_of(name) == context}
            self._store.commit(batch)
            return deleted

    def refuse_read_only(self, state: State, subject: str) -> None:
        """42205 where nothing may be changed."""
        if _mode_of(state, subject).is_read_only:
            raise refusals.not_permitted(f"{described(subject)} is in read-only mode")


_ABOVE_ALL: Final = context_prefix(GLOBAL_CONTEXT)


def described(subject: str) -> str:
    """As Confluent's messages name a subject."""
    return f"Subject {subject or 'null'} in context {context_prefix(context_of(subject))}"


def _place(subject: str) -> str:
    """Where a setting is kept. The default context is the same as all subjects."""
    return GLOBAL if Qualified.parse(subject).is_default_context else normalized(subject)


def _settable(subject: str) -> str:
    if not is_valid_subject(subject, for_settings=True):
        raise refusals.invalid_subject(subject)
    return _place(subject)


def _scopes(place: str) -> list[str]:
    """From the narrowest to the widest."""
    context = context_of(place)
    wider = GLOBAL if context == DEFAULT_CONTEXT else context_prefix(context)
    return list(dict.fromkeys((place, wider, _ABOVE_ALL)))


def _mode_of(state: State, place: str) -> Mode:
    modes = [state.modes[scope] for scope in _scopes(place) if scope in state.modes]
    if state.modes.get(GLOBAL) is Mode.READONLY_OVERRIDE:
        return Mode.READONLY_OVERRIDE
    return modes[0] if modes else Mode.READWRITE
