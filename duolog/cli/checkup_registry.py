"""What `duolog doctor` looks at: the schema registry that the settings name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from duolog.cli.checkup import Finding, Status
from duolog.errors import DuologError

if TYPE_CHECKING:
    from duolog.avro.registry.connection_options import ConnectionOptions

_SECONDS = 10.0


def registry(options: Mapping[str, str]) -> Finding:
    """Whether it answers, and lets in whoever asks. Without one, schemas are in the log."""
    try:
        from duolog.avro.registry.options import RegistryOptions

        connection = RegistryOptions.of(options).connection
        if connection is None:
            return Finding("registry", Status.OK, "in the log itself")
        quick = replace(connection, max_retries=0, deadline_seconds=_SECONDS)
        began = time.perf_counter()
        status = _ask(quick)
        took_ms = (time.perf_counter() - began) * 1000
    except DuologError as error:
        return Finding("registry", Status.ERROR, str(error))
    except ModuleNotFoundError as error:
        return Finding(
            "registry", Status.ERROR, f"{error.name} is missing", "pip install 'duolog[registry]'"
        )
    return judged(", ".join(connection.urls), status, took_ms)


def judged(url: str, status: int, took_ms: float) -> Finding:
    """What its answer means. Pure."""
    if status in {401, 403}:
        return Finding(
            "registry",
            Status.ERROR,
            f"{url} does not let in who asks (status {status})",
            "Look at basic.auth.user.info or bearer.auth.token in [avro].",
        )
    if status != 200:
        return Finding(
            "registry",
            Status.ERROR,
            f"{url} answers with status {status}",
            "Look at the path in schema.registry.url: is that a schema registry?",
        )
    return Finding("registry", Status.OK, f"{url} answers ({took_ms:.0f} ms)")


def _ask(options: ConnectionOptions) -> int:
    from duolog.avro.registry.connection import RegistryConnection

    connection = RegistryConnection(options)
    try:
        return connection.ask("GET", "schemas/types", "name the types of schemas").status
    finally:
        connection.close()
