"""A log that was open when its process was forked is of no use in the child, and says so.

The child has the parent's memory but none of its threads, so a call would wait for ever or write
with what the parent does not know. Closing RocksDB there deletes files that the parent has made
since. So in the child everything of the log is taken away, and RocksDB is never closed.

RocksDB's own threads are missing too. What it is asked to write out in the child waits for them for
ever, also of another log, so the child opens none; and when the process ends, RocksDB's destructors
would wait for them or crash, so the process ends before they run.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakSet

from duolog.errors import LogForked

_c_library = ctypes.CDLL(None)
_opened_here: WeakSet[Any] = WeakSet()
_has_threads = False  # RocksDB has started its threads, here or in a parent
_is_child = False  # and in a parent it was


class Forked:
    """Stands in the place of what must not be used in the child: whatever is asked of it raises."""

    def __init__(self, folder: Path) -> None:
        self.__dict__["_folder"] = folder

    def _refuse(self) -> NoReturn:
        raise LogForked(
            f"The log in {self.__dict__['_folder']} was opened before this process was forked, and "
            "belongs to the parent. Use it there, or start the process by 'spawn' "
            "(multiprocessing.set_start_method) and open it in the new process."
        )

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        self._refuse()

    def __enter__(self) -> NoReturn:
        self._refuse()

    def __exit__(self, *exc: object) -> None: ...

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse()


def leave_to_parent_in_child(opened: Any) -> None:
    """Call `opened.leave_to_parent()` in every child that is forked while it is there."""
    global _has_threads  # noqa: PLW0603 - as RocksDB's threads, one for the process
    _has_threads = True
    _opened_here.add(opened)


def check_may_open(folder: Path) -> None:
    """Refuse to open a log where RocksDB has lost its threads."""
    if _is_child:
        raise LogForked(
            f"The log in {folder} cannot be opened in this process: it was forked from one that "
            "had opened a log, and RocksDB does not work after that. Start the process by 'spawn' "
            "(multiprocessing.set_start_method), or fork before the first log is opened."
        )


def _leave_to_parent() -> None:
    global _is_child  # noqa: PLW0603
    for opened in tuple(_opened_here):
        opened.leave_to_parent()
    if _has_threads:
        _is_child = True
        _end_before_destructors()


def _end_before_destructors() -> None:
    """What is registered last is called first, after Python has ended: end there."""
    on_exit = getattr(_c_library, "on_exit", None)  # not every C library has it
    if on_exit is not None:
        on_exit(_c_library._exit, None)  # noqa: SLF001 - it is C's


os.register_at_fork(after_in_child=_leave_to_parent)


def keep_for_ever(objects: Iterable[object]) -> None:
    """Never let go of these, not even when the process ends."""
    keep: Callable[[ctypes.py_object[object]], None] = ctypes.pythonapi.Py_IncRef
    for each in objects:
        keep(ctypes.py_object(each))
