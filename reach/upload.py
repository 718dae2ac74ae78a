"""Parts from tasks that share no disk with the host: written here, uploaded when they are whole.

Runs in Spark tasks: needs only the standard library.
"""

from __future__ import annotations

import tempfile
import uuid
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from duolog.errors import HostFault
from duolog.log.staging import StagedFile, check_staged_name, not_staged
from duolog.reach.connection import Endpoint, HostConnection
from duolog.reach.exchange import Answer, Request
from duolog.reach.options import RemoteOptions
from duolog.reach.protocol import CRC32_HEADER, PREFIX

_IN_MEMORY_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class UploadStaging:
    """The place for an epoch's parts at a host. Its names are those below `staging/`."""

    endpoint: Endpoint
    epoch_folder: str  # <hash of the writer>/<epoch>
    options: RemoteOptions

    def at(self, epoch: int) -> UploadStaging:
        return replace(self, epoch_folder=f"{self._writer_folder}/{epoch}")

    def begin(self) -> StagedFile:
        return _Upload(self, f"{self.epoch_folder}/{uuid.uuid4().hex}.part")

    def read(self, name: str) -> bytes:
        return _ask(self, "GET", check_staged_name(name), "give a staged part").content

    def remove(self, name: str) -> None:
        _ask(self, "DELETE", check_staged_name(name), "remove a staged part")

    def remove_writer(self) -> None:
        _ask(self, "DELETE", self._writer_folder, "remove a writer's staged parts")

    @property
    def _writer_folder(self) -> str:
        return self.epoch_folder.partition("/")[0]


def _ask(place: UploadStaging, method: str, name: str, asked: str, **sent: Any) -> Answer:
    connection = HostConnection(place.endpoint, place.options)
    try:
        request = Request(method, f"{PREFIX}/parts/{name}", asked, **sent)
        return connection.ask(request, may_repeat=True)
    finally:
        connection.close()


class _Upload:
    def __init__(self, place: UploadStaging, name: str) -> None:
        self._place = place
        self._name = name
        self._content = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        self._length = self._crc32 = 0
        self._finished = False

    def write(self, content: bytes) -> object:
        self._crc32 = zlib.crc32(content, self._crc32)
        self._length += len(content)
        try:
            return self._content.write(content)
        except OSError as error:
            raise not_staged(Path(tempfile.gettempdir(), "part"), error) from error

    def finish(self) -> str:
        headers = {"Content-Length": str(self._length), CRC32_HEADER: str(self._crc32)}
        asked = f"take a staged part of {self._length} bytes"
        _ask(self._place, "PUT", self._name, asked, body=self._content, headers=headers)
        self._finished = True
        self._content.close()
        return self._name

    def abort(self) -> None:
        self._content.close()
        if self._finished:
            # Where the host cannot be asked, it goes with the writer's next commit.
            with suppress(HostFault):
                self._place.remove(self._name)
