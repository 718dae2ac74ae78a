"""Folders of jars that are complete or absent, whoever else fetches at the same time."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from duolog.errors import DownloadFailed, InvalidSetting
from duolog.flock import locked

CACHE_VARIABLE = "DUOLOG_CACHE"
_LIST = "jars.json"
_LOCK_SECONDS = 1800  # a fetch that goes on may be slow; one that stands still is ended


def cache_folder() -> Path:
    """Where fetched files are kept."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "duolog"


def cached(folder: Path, fill: Callable[[Path], None]) -> list[Path]:
    """The jars in a folder of the cache, which `fill` puts into another one when it is not there.

    `fill` gets a folder for its own files too: its jars go into `jars/` below it.
    """
    found = _complete(folder)
    if found is not None:
        return found
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            found = _complete(folder)
            return _filled(folder, fill) if found is None else found
    except OSError as error:
        raise InvalidSetting(
            f"The cache {folder.parent} cannot be used: {error}. Name another with "
            f"{CACHE_VARIABLE}."
        ) from error


def _complete(folder: Path) -> list[Path] | None:
    try:
        listed: dict[str, int] = json.loads((folder / _LIST).read_bytes())
        jars = [folder / name for name in listed]
        sizes = [jar.stat().st_size for jar in jars]
    except (OSError, ValueError):
        return None
    is_whole = sizes == list(listed.values()) and all(map(zipfile.is_zipfile, jars))
    return jars if is_whole else None


def _filled(folder: Path, fill: Callable[[Path], None]) -> list[Path]:
    leftover = f".{folder.name}-"
    for abandoned in folder.parent.glob(f"{leftover}*"):
        shutil.rmtree(abandoned, ignore_errors=True)  # of a fetch that was killed
    with tempfile.TemporaryDirectory(prefix=leftover, dir=folder.parent) as unfinished:
        jars = Path(unfinished) / "jars"
        jars.mkdir()
        fill(Path(unfinished))
        sizes = {jar.name: _checked_size(jar) for jar in sorted(jars.glob("*.jar"))}
        if not sizes:
            raise DownloadFailed("There are no jars in what was fetched. Is it a library at all?")
        (jars / _LIST).write_text(json.dumps(sizes, indent=1))
        if folder.exists():
            folder.rename(Path(unfinished) / "damaged")
        jars.rename(folder)
    return [folder / name for name in sizes]


def _checked_size(jar: Path) -> int:
    try:
        with zipfile.ZipFile(jar) as opened:
            damaged = opened.testzip()
    except zipfile.BadZipFile:
        damaged = jar.name
    if damaged is not None:
        raise DownloadFailed(
            f"What was fetched as {jar.name} is damaged or is no jar. Something on the way may "
            "have answered with a page of its own; try again, or name a mirror with "
            "DUOLOG_MAVEN_URL."
        )
    return jar.stat().st_size


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One fetch of one folder at a time; the lock ends with its process."""
    lock = folder.with_name(f"{folder.name}.lock")
    with ExitStack() as held:
        try:
            held.enter_context(locked(lock, _LOCK_SECONDS))
        except BlockingIOError:
            raise DownloadFailed(
                f"Another process has been fetching for {_LOCK_SECONDS // 60} minutes and "
                f"holds {lock}. End it, and try again."
            ) from None
        yield
