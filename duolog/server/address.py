"""Where a service listens, as people write it: `127.0.0.1:7070`, `[::1]:0`, `localhost:8080`."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache

from duolog.errors import InvalidSetting

_LAST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port; port 0 is any free one."""

    host: str
    port: int

    @classmethod
    def of(cls, text: str) -> Address:
        host, colon, port = text.strip().rpartition(":")
        bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
        is_port = port.isascii() and port.isdigit() and int(port) <= _LAST_PORT
        if not colon or not bare or not is_port or (":" in bare and bare == host):
            raise InvalidSetting(
                f"'{text}' is no address to listen on. Write HOST:PORT, like 127.0.0.1:7070; an "
                "IPv6 address goes in brackets, and port 0 takes a free one."
            )
        return cls(bare, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_everywhere(self) -> bool:
        """Whether it stands for all addresses of the machine, and so is none to connect to."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return f"{shown}:{self.port}"

    def url(self, *, tls: bool = False) -> str:
        return f"{'https' if tls else 'http'}://{self}"


@lru_cache(maxsize=256)  # asked for each request
def is_loopback(host: str) -> bool:
    """Whether what goes there stays on this machine."""
    if host.lower() in {"localhost", "localhost."}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
