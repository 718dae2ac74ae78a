"""Ports on loopback for a server that has to come back to them after a restart."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

from duolog.bridge.kafka.local.properties import LOOPBACK
from duolog.errors import PortTaken

# Below what Linux and macOS give to outgoing connections: clients that knock at a broker which is
# down would otherwise, sooner or later, get its port for themselves.
_LOWEST, _HIGHEST = 15_000, 32_000
_TRIES = 200


def free_port(chosen: Collection[int] = ()) -> int:
    """A port on which nobody listens now, and none of those already chosen for the same server.

    Another program may listen there a moment later: be ready to try again.
    """
    chance = random.SystemRandom()
    for _ in range(_TRIES):
        port = chance.randint(_LOWEST, _HIGHEST)
        if port not in chosen and is_free(port):
            return port
    raise PortTaken(
        f"{_TRIES} ports between {_LOWEST} and {_HIGHEST} were tried, and all are in use."
    )


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    try:
        check_free(port)
    except PortTaken:
        return False
    return True


def check_free(port: int) -> None:
    """Raise PortTaken unless a server could listen there now."""
    try:
        # As Kafka itself does, this asks for the port even while old connections to it linger.
        socket.create_server((LOOPBACK, port)).close()
    except OSError as error:
        raise PortTaken(
            f"Cannot listen on {LOOPBACK} port {port}: {error.strerror or error}. Choose another "
            "port, or 0 for a free one."
        ) from error
