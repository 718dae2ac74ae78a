"""Which way to a log: the lock decides, each time.

Free: this process becomes its owner for a while. Held by a host: the host is asked, once it has
proved to be one. Held by somebody else: they are waited for, since they mostly need milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from duolog.avro.registered_codec import check_options
from duolog.errors import DuologError, HostMismatch, InvalidSetting, LogBusy, RocksDBNotFound
from duolog.log.location import check_location
from duolog.log.options import LogOptions
from duolog.log.owner import Ownership, host_hint, take_ownership
from duolog.reach.options import RemoteOptions

if TYPE_CHECKING:
    from duolog.avro.registry.port import Registry
    from duolog.log.access import LogAccess
    from duolog.log.embedded import EmbeddedLog
    from duolog.reach.connection import Endpoint
    from duolog.reach.remote import RemoteLog

# What speaks with a host is imported where there is one: with TLS it takes 0.1 s, in each Spark
# worker.

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


def reach(
    path: str | os.PathLike[str] | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
    create: bool = False,
    options: LogOptions | None = None,
    remote: RemoteOptions | None = None,
    avro: Mapping[str, str] = _NO_OPTIONS,
) -> LogAccess:
    """The log in a folder, or behind a url; use it as a context manager, or close it.

    `options` are those of an embedded log, `remote` those for asking a host. `avro` holds options
    as Confluent's serializers take them; without `schema.registry.url`, schemas are registered in
    the log itself.
    """
    if (path is None) == (url is None):
        raise InvalidSetting("Say where the log is: give its path or its host's url, one of them.")
    check_options(avro)
    remote = remote or RemoteOptions()
    if url is not None:
        if create:
            raise InvalidSetting("A log is not created through a url: its host has one already.")
        return _behind_url(url, token, remote, avro)
    if token is not None:
        raise InvalidSetting("A token belongs to a url; a path needs none. Leave one of them out.")
    assert path is not None  # noqa: S101 - for the type checker: one of them is given
    return _in_folder(path, create, options or LogOptions(), remote, avro)


def _behind_url(
    url: str, token: str | None, options: RemoteOptions, avro: Mapping[str, str]
) -> RemoteLog:
    from duolog.reach.address import check_privacy, parse_address
    from duolog.reach.connection import Endpoint, HostConnection
    from duolog.reach.handshake import settle_remote
    from duolog.reach.remote import RemoteLog
    from duolog.reach.secret import Secret

    address = check_privacy(parse_address(url), allow_plain_http=options.allow_plain_http)
    credential = None if token is None else Secret(token)
    connection = HostConnection(Endpoint(address, credential), options)
    try:
        settle_remote(connection)
    except BaseException:
        connection.close()
        raise
    return RemoteLog(connection, options, avro)


def _in_folder(
    path: str | os.PathLike[str],
    create: bool,
    options: LogOptions,
    remote: RemoteOptions,
    avro: Mapping[str, str],
) -> LogAccess:
    folder = check_location(path)
    search = _HostSearch(folder, remote)
    try:
        ownership = take_ownership(
            folder,
            wait_seconds=options.lock_wait_seconds,
            clock=options.clock,
            create=create,
            meanwhile=search.look,
        )
    except _HostFound as found:
        return _hosted(found.endpoint, folder, remote, avro)
    except LogBusy as busy:
        raise search.failure or busy from None
    return _embedded(ownership, options, avro)


class _HostFound(Exception):
    """Ends the wait for the lock."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        super().__init__()


class _HostSearch:
    """Looks for a host while the lock is held, and remembers why there was none."""

    def __init__(self, folder: Path, options: RemoteOptions) -> None:
        self._folder = folder
        self._options = options
        self.failure: DuologError | None = None

    def look(self) -> None:
        if host_hint(self._folder) is None:
            self.failure = None
            return
        from duolog.reach.handshake import endpoint_of_folder

        try:
            endpoint = endpoint_of_folder(self._folder, self._options)
        except DuologError as failure:
            self.failure = failure
        else:
            raise _HostFound(endpoint)


def _hosted(
    endpoint: Endpoint, folder: Path, options: RemoteOptions, avro: Mapping[str, str]
) -> RemoteLog:
    from duolog.reach.connection import HostConnection
    from duolog.reach.handshake import endpoint_of_folder
    from duolog.reach.remote import RemoteLog

    def find(until: float) -> Endpoint:
        found = endpoint_of_folder(folder, options, until)
        if found.log_id != endpoint.log_id:
            raise HostMismatch(
                f"The log in {folder} was replaced by another one while it was in use. Open it "
                "again."
            )
        return found

    return RemoteLog(HostConnection(endpoint, options, find), options, avro, folder)


def registry_for(log: LogAccess, avro: Mapping[str, str] = _NO_OPTIONS) -> Registry:
    """The registry that these options name, or the one that lives in the log, wherever that is."""
    from duolog.reach.remote import RemoteLog

    if isinstance(log, RemoteLog):
        return log.registry(avro)
    from duolog.avro import embedded

    return embedded.registry_for(cast("EmbeddedLog", log), avro)


def _embedded(ownership: Ownership, options: LogOptions, avro: Mapping[str, str]) -> EmbeddedLog:
    try:
        from duolog.avro.embedded import open_log
    except ModuleNotFoundError as error:
        ownership.release()
        if error.name != "rocksdict":
            raise
        raise RocksDBNotFound(
            f"The log in {ownership.folder} is not hosted, and to open it here takes the Python "
            "package rocksdict, which is not installed. Install it, start a host for the log, or "
            "give a url."
        ) from error
    return open_log(ownership.folder, options=options, avro=avro, ownership=ownership)
