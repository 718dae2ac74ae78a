"""The socket that a service listens on."""

from __future__ import annotations

import os
import socket

from duolog.errors import InvalidSetting, PortTaken
from duolog.server.address import Address

_BACKLOG = 2048
_IDLE_SECONDS = 30  # a peer that has vanished is asked for after this
_STUCK_SECONDS = 60  # one that takes nothing for so long is let go


def listen(address: Address) -> socket.socket:
    """Take the address. Connections queue from here on, so a client may come at once."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.getaddrinfo(address.host, address.port, family, socket.SOCK_STREAM)
        listener = socket.create_server(
            (address.host, address.port), family=family, backlog=_BACKLOG
        )
    except socket.gaierror as error:
        raise InvalidSetting(
            f"Cannot listen on '{address.host}': {error.strerror}. Give an address of this machine."
        ) from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise PortTaken(
            f"Cannot listen on {address.host} port {address.port}: {reason}. Choose another, or "
            "port 0 for a free one."
        ) from error
    # asyncio sets this only where the protocol is named, which create_server does not do. Without
    # it an answer's body waits 40 ms for the client to say that it got the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    _let_go_of_the_dead(listener)
    return listener


def taken(listener: socket.socket) -> Address:
    """The address that the socket got, in numbers. A name may stand for several addresses, and
    others of this machine may listen at the rest of them.
    """
    host, port = listener.getsockname()[:2]
    return Address(host, int(port))


def _let_go_of_the_dead(listener: socket.socket) -> None:
    """Accepted connections inherit this. It is the kernel that finds out, so it costs nothing."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, number in (
        ("TCP_KEEPIDLE", _IDLE_SECONDS),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", _STUCK_SECONDS * 1000),
    ):
        if hasattr(socket, option):  # not on every system
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), number)
