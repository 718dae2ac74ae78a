"""A log wherever it is: in this process, at a host on this machine, or behind a url.

    with reach("/data/mylog") as log: ...
    with reach(url="https://bridge.example:8443", token=token) as log: ...

Needs only the standard library, pyarrow and numpy; what opens an embedded log is loaded when there
is one to open.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.reach.open import reach, registry_for
    from duolog.reach.options import RemoteOptions
    from duolog.reach.remote import RemoteLog

__all__ = ["RemoteLog", "RemoteOptions", "reach", "registry_for"]

_FILES = {
    "RemoteLog": "remote",
    "RemoteOptions": "options",
    "reach": "open",
    "registry_for": "open",
}


def __getattr__(name: str) -> object:
    if name not in _FILES:
        raise AttributeError(f"module 'duolog.reach' has no attribute '{name}'")
    return getattr(import_module(f"duolog.reach.{_FILES[name]}"), name)
