"""What a disk may hold after a power loss, made from the journal of the fault shim.

Content. A page (4 KiB) that was written and then synced is durable. Of what was written since, any
page may be there or not, each as it was at any moment since (written back early, or never), in
units of a page or of a sector (512 bytes); the size may be any that the file has had since. A page
whose sync failed is marked clean by Linux although it never reached the disk: no later sync makes
it durable, unless the page is written to again.

Names. Two models, since file systems differ:
  - ORDERED, as ext4, xfs and btrfs do it: names change in the order in which they were changed, and
    each sync that succeeds makes all earlier changes durable;
  - STRICT, what POSIX promises: a change of a name is durable when its own folder has been synced,
    and a file's sync does nothing for its name. Folders persist independently of one another, each
    folder's changes in order.
What was changed since may be there up to any point.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path, PurePosixPath

from tests.support.journal import Event, Kind

PAGE_BYTES = 4096
SECTOR_BYTES = 512


class Names(Enum):
    """How changes of names persist."""

    ORDERED = "ordered"
    STRICT = "strict"


class Unsynced(Enum):
    """What is left of content and names that were not synced."""

    NOTHING = "nothing"
    ANY_PAGES = "any pages"  # any of the names
    ALL_BUT_A_HOLE = "all but a hole"  # a page of every other file; any of the names


@dataclass(frozen=True, slots=True)
class _Piece:
    """Bytes written within one page."""

    number: int
    start: int
    content: bytes

    @property
    def page(self) -> int:
        return self.start // PAGE_BYTES

    @property
    def end(self) -> int:
        return self.start + len(self.content)


@dataclass(frozen=True, slots=True)
class _Resize:
    number: int
    size: int


@dataclass
class _File:
    """One file: what is durable, and what was done since."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[_Piece | _Resize] = field(default_factory=list)
    failed_upto: int = 0  # what was pending at a sync that failed

    def write(self, number: int, start: int, content: bytes) -> None:
        at = 0
        while at < len(content):
            room = PAGE_BYTES - (start + at) % PAGE_BYTES
            self.pending.append(_Piece(number, start + at, content[at : at + room]))
            at += room

    def sync(self, upto: int) -> None:
        """What was done up to this number is durable, but for pages whose sync failed before."""
        dirty = {
            piece.page
            for piece in self.pending
            if isinstance(piece, _Piece) and self.failed_upto < piece.number <= upto
        }
        left: list[_Piece | _Resize] = []
        for change in self.pending:
            if change.number > upto:
                left.append(change)
            elif isinstance(change, _Resize) or change.page in dirty:
                _apply(self.durable, change)
            else:
                _extend(self.durable, change.end)
                left.append(change)
        self.pending = left

    def current(self) -> bytes:
        """What a process reads."""
        content = bytearray(self.durable)
        for change in self.pending:
            _apply(content, change)
        return bytes(content)

    def after_loss(self, unsynced: Unsynced, chance: random.Random) -> bytes:
        if unsynced is Unsynced.NOTHING or not self.pending:
            return bytes(self.durable)
        if unsynced is Unsynced.ALL_BUT_A_HOLE:
            return self._with_a_hole(chance)
        return self._any_pages(chance)

    def _with_a_hole(self, chance: random.Random) -> bytes:
        pages = sorted({change.page for change in self.pending if isinstance(change, _Piece)})
        content = bytearray(self.durable)
        lost = {chance.choice(pages)} if pages and chance.random() < 0.5 else set()
        for change in self.pending:
            if isinstance(change, _Resize) or change.page not in lost:
                _apply(content, change)
            else:
                _extend(content, change.end)
        return bytes(content)

    def _any_pages(self, chance: random.Random) -> bytes:
        upto = chance.randint(0, len(self.pending))  # how far the size got
        size = self._size_after(upto)
        resizes = [at for at, change in enumerate(self.pending) if isinstance(change, _Resize)]
        first = max((at + 1 for at in resizes if at < upto), default=0)
        end = min((at for at in resizes if at >= upto), default=len(self.pending))
        content = bytearray(self.durable)
        for change in self.pending[:first]:
            _apply(content, change)
        by_page: dict[int, list[_Piece]] = {}
        for change in self.pending[first:end]:
            if isinstance(change, _Piece):
                by_page.setdefault(change.page, []).append(change)
        likely = chance.choice((0.1, 0.5, 0.9))
        unit = chance.choice((PAGE_BYTES, SECTOR_BYTES))
        for page, pieces in by_page.items():
            self._persist_page(content, page, pieces, unit, likely, chance)
        _extend(content, size)
        return bytes(content[:size])

    def _persist_page(
        self,
        content: bytearray,
        page: int,
        pieces: list[_Piece],
        unit: int,
        likely: float,
        chance: random.Random,
    ) -> None:
        for start in range(page * PAGE_BYTES, (page + 1) * PAGE_BYTES, unit):
            if chance.random() >= likely:
                continue
            for piece in pieces[: chance.randint(1, len(pieces))]:
                low, high = max(start, piece.start), min(start + unit, piece.end)
                if low < high:
                    _extend(content, high)
                    content[low:high] = piece.content[low - piece.start : high - piece.start]

    def _size_after(self, changes: int) -> int:
        size = len(self.durable)
        for change in self.pending[:changes]:
            size = change.size if isinstance(change, _Resize) else max(size, change.end)
        return size


def _apply(content: bytearray, change: _Piece | _Resize) -> None:
    if isinstance(change, _Resize):
        del content[change.size :]
        _extend(content, change.size)
    else:
        _extend(content, change.end)
        content[change.start : change.end] = change.content


def _extend(content: bytearray, size: int) -> None:
    if size > len(content):
        content.extend(bytes(size - len(content)))


class _Folder:
    """A folder. What is in it is known by its path."""


_Entry = _File | _Folder


@dataclass(frozen=True, slots=True)
class _Renaming:
    """One change of names, whole or not at all: paths and what they are from then on."""

    number: int
    folder: str
    changes: tuple[tuple[str, _Entry | None], ...]


class Disk:
    """Follows a journal. All paths are below the folder that was watched."""

    def __init__(self) -> None:
        self._root = ""
        self._number = 0
        self._names: dict[str, _Entry] = {}
        self._durable: dict[Names, dict[str, _Entry]] = {model: {} for model in Names}
        self._pending: dict[Names, list[_Renaming]] = {model: [] for model in Names}
        self._handles: dict[int, tuple[str, _File | None]] = {}
        self._syncing: dict[int, int] = {}
        self.notes: list[bytes] = []

    def follow(self, events: Iterable[Event]) -> None:
        for event in events:
            self._number += 1
            self._follow(event)

    def _follow(self, event: Event) -> None:
        match event.kind:
            case Kind.STARTED:
                self._root = event.path
                self._handles.clear()
                self._syncing.clear()
            case Kind.OPENED:
                self._opened(event)
            case Kind.WRITTEN:
                if (file := self._file(event)) is not None:
                    file.write(self._number, event.number, event.first)
            case Kind.RESIZED:
                file = self._file(event)
                if file is not None and len(file.current()) != event.number:
                    file.pending.append(_Resize(self._number, event.number))
            case Kind.SYNC_BEGUN:
                self._syncing[event.number] = self._number
            case Kind.SYNC_ENDED:
                self._synced(event, self._syncing.pop(event.number))
            case Kind.MADE_FOLDER:
                self._change((event.path, _Folder()))
            case Kind.UNLINKED:
                if event.path in self._names:
                    self._change((event.path, None))
            case Kind.RENAMED:
                if event.path in self._names:
                    if isinstance(self._names[event.path], _Folder):
                        raise RuntimeError("Renamed folders are not followed.")
                    self._change((event.path, None), (event.target, self._names[event.path]))
            case Kind.LINKED:
                self._change((event.target, self._names[event.path]))
            case Kind.NOTED:
                self.notes.append(event.first)
            case Kind.UNFOLLOWED:
                raise RuntimeError(
                    f"The shim cannot follow {event.path}: the drill proves nothing."
                )

    def _opened(self, event: Event) -> None:
        known = self._names.get(event.path)
        if known is None and event.number and event.path != self._root:
            known = _File()
            self._change((event.path, known))
        elif isinstance(known, _File) and event.detail:
            known.pending.append(_Resize(self._number, 0))
        self._handles[event.handle] = (event.path, known if isinstance(known, _File) else None)

    def _file(self, event: Event) -> _File | None:
        return self._handles[event.handle][1]

    def _change(self, *changes: tuple[str, _Entry | None]) -> None:
        folder = str(PurePosixPath(changes[-1][0]).parent)
        renaming = _Renaming(self._number, folder, changes)
        _rename(self._names, renaming)
        for pending in self._pending.values():
            pending.append(renaming)

    def _synced(self, event: Event, begun: int) -> None:
        path, file = self._handles[event.handle]
        if not event.detail:
            if file is not None:
                file.failed_upto = begun
            return
        if file is not None:
            file.sync(begun)
        for model, pending in self._pending.items():
            left = []
            for renaming in pending:
                everywhere = model is Names.ORDERED
                if renaming.number <= begun and (everywhere or renaming.folder == path):
                    _rename(self._durable[model], renaming)
                else:
                    left.append(renaming)
            self._pending[model] = left

    def current(self) -> dict[str, bytes]:
        """All files as a process reads them, by their paths below the watched folder."""
        return {
            self._relative(path): file.current()
            for path, file in self._names.items()
            if isinstance(file, _File)
        }

    def write_after_loss(
        self, folder: Path, names: Names, unsynced: Unsynced, chance: random.Random
    ) -> None:
        """Write what a power loss at this moment may leave into a folder that is not there yet."""
        folder.mkdir()
        for path, entry in sorted(self._names_after_loss(names, unsynced, chance).items()):
            target = folder / self._relative(path)
            if not target.parent.is_dir():
                continue  # its folder was lost
            if isinstance(entry, _File):
                target.write_bytes(entry.after_loss(unsynced, chance))
            else:
                target.mkdir()

    def _names_after_loss(
        self, model: Names, unsynced: Unsynced, chance: random.Random
    ) -> dict[str, _Entry]:
        names = dict(self._durable[model])
        by_scope: dict[str, list[_Renaming]] = {}
        for renaming in self._pending[model]:
            scope = "" if model is Names.ORDERED else renaming.folder
            by_scope.setdefault(scope, []).append(renaming)
        limits = {scope: _upto(unsynced, pending, chance) for scope, pending in by_scope.items()}
        kept = [
            renaming
            for scope, pending in by_scope.items()
            for renaming in pending
            if renaming.number <= limits[scope]
        ]
        for renaming in kept:
            _rename(names, renaming)
        return names

    def _relative(self, path: str) -> str:
        return path[len(self._root) + 1 :]


def _upto(unsynced: Unsynced, pending: list[_Renaming], chance: random.Random) -> int:
    """The number of the last change of names that has persisted."""
    if unsynced is Unsynced.NOTHING:
        return 0
    return chance.choice([0, *(renaming.number for renaming in pending), pending[-1].number])


def _rename(names: dict[str, _Entry], renaming: _Renaming) -> None:
    for path, entry in renaming.changes:
        if entry is None:
            names.pop(path, None)
        else:
            names[path] = entry
