"""The topic log. Names load when first asked for: a Spark task has only a part of their needs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.log.access import LogAccess
    from duolog.log.embedded import EmbeddedLog, open_log
    from duolog.log.options import LogOptions

__all__ = ["EmbeddedLog", "LogAccess", "LogOptions", "open_log"]

_ROOMS = {
    "EmbeddedLog": "embedded",
    "LogAccess": "access",
    "LogOptions": "options",
    "open_log": "embedded",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'duolog.log' has no attribute '{name}'")
    return getattr(import_module(f"duolog.log.{_ROOMS[name]}"), name)
