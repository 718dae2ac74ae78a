"""Staged parts that are uploaded: received whole or not at all, and only below `staging/`."""

from __future__ import annotations

import os
import re
import shutil
import uuid
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from starlette.requests import Request

from duolog.bridge.internal.bodies import declared_bytes
from duolog.errors import DamagedPart, DiskFull, InvalidRequest, NotFound
from duolog.log.model import Writer
from duolog.log.part import Part
from duolog.log.staging import epoch_name, not_staged, remove_parts, staged_path
from duolog.reach.protocol import CRC32_HEADER

if TYPE_CHECKING:
    from duolog.log.embedded import EmbeddedLog

T = TypeVar("T")
InThread = Callable[[Callable[[], T]], Awaitable[T]]

_WRITE_BYTES: Final = 1 << 20
_WRITER: Final = re.compile(r"[0-9a-f]{24}")


class StagedUploads:
    """The staging folder of a hosted log, as those see it who do not share its disk."""

    def __init__(self, log: EmbeddedLog, in_thread: InThread[Any], max_bytes: int) -> None:
        self._log = log
        self._in_thread = in_thread
        self._max_bytes = max_bytes

    async def receive(self, request: Request, name: str) -> None:
        """Store a part under its name. The same again is fine, another one is refused."""
        path = staged_path(self._log.folder, name)
        length, crc32 = self._declared(request)
        if await self._in_thread(lambda: self._is_there(path, length, crc32)):
            return
        being_written = path.with_name(f".{path.name}.{uuid.uuid4().hex}.new")
        try:
            await self._write(request.stream(), being_written, length, crc32)
            await self._in_thread(lambda: being_written.replace(path))
        except OSError as error:
            raise not_staged(path, error) from error
        finally:
            being_written.unlink(missing_ok=True)

    async def _write(
        self, chunks: AsyncIterator[bytes], path: Path, length: int, crc32: int
    ) -> None:
        await self._in_thread(lambda: self._make_room(path.parent, length))
        received = summed = 0
        content = await self._in_thread(lambda: path.open("xb", buffering=0))
        with content:
            gathered = bytearray()

            def write_out() -> None:
                rest = memoryview(gathered)
                while rest:
                    rest = rest[content.write(rest) :]

            async for chunk in chunks:
                received += len(chunk)
                if received > length:
                    break
                summed = zlib.crc32(chunk, summed)
                gathered += chunk
                if len(gathered) >= _WRITE_BYTES:
                    await self._in_thread(write_out)
                    gathered = bytearray()
            await self._in_thread(write_out)
        if (received, summed) != (length, crc32):
            raise DamagedPart(
                f"A part came with {received} bytes and checksum {summed}, its task sent {length} "
                f"with {crc32}. It was not kept; send it again."
            )

    def _declared(self, request: Request) -> tuple[int, int]:
        length = declared_bytes(request)
        written = request.headers.get(CRC32_HEADER, "")
        if length is None or not re.fullmatch(r"[0-9]{1,10}", written):
            raise InvalidRequest(f"A part comes with Content-Length and {CRC32_HEADER}.")
        if length > self._max_bytes:
            raise InvalidRequest(
                f"A part of {length} bytes is over the host's limit of {self._max_bytes}. Use more "
                "tasks, so that each one stages less."
            )
        return length, int(written)

    def _is_there(self, path: Path, length: int, crc32: int) -> bool:
        try:
            known = _length_and_crc32(path)
        except FileNotFoundError:
            return False
        if known != (length, crc32):
            raise DamagedPart(
                f"There is another part under the name {path.name} already. Names are not used "
                "twice: run the write again."
            )
        return True

    def _make_room(self, folder: Path, length: int) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        free, wanted = shutil.disk_usage(folder).free, self._log.options.min_free_bytes
        if free - length < wanted:
            raise DiskFull(
                f"{free >> 20} MiB are free for staged parts; with one more of {length >> 20} MiB, "
                f"less than {wanted >> 20} MiB would be left. Nothing of the write was committed; "
                "free some space at the host and run it again."
            )

    def file(self, name: str) -> Path:
        """A part's file."""
        path = staged_path(self._log.folder, name)
        if not path.is_file():
            raise NotFound(f"There is no staged part {name}. Run the write again.")
        return path

    def remove(self, name: str) -> None:
        """Remove one part, or (by the hash alone) all of a writer."""
        if _WRITER.fullmatch(name):
            remove_parts(self._log.folder / "staging" / name)
        else:
            staged_path(self._log.folder, name).unlink(missing_ok=True)

    def resolved(self, message: str, writer: Writer, epoch: int) -> Part:
        """The part of a message, its file found; only those of the epoch itself are taken."""
        part = Part.from_message(message.encode())
        if part.path is None:
            return part
        path = staged_path(self._log.folder, part.path)
        if not part.path.startswith(f"{epoch_name(writer, epoch)}/"):
            raise InvalidRequest(
                f"The part {part.path} was staged for another writer or epoch than {writer}, "
                f"{epoch}. Stage parts in the place that the log gives for their epoch."
            )
        return replace(part, path=os.fspath(path))


def _length_and_crc32(path: Path) -> tuple[int, int]:
    length = crc32 = 0
    with path.open("rb", buffering=0) as content:
        while read := content.read(_WRITE_BYTES):
            length += len(read)
            crc32 = zlib.crc32(read, crc32)
    return length, crc32
