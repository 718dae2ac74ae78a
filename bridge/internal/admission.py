"""Who may ask, and for which log. Tokens are compared in constant time and never shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from duolog.bridge.http.callers import THIS_MACHINE
from duolog.bridge.http.front import CALLER_NAME
from duolog.bridge.local_callers import LocalCallers
from duolog.errors import HostMismatch, HostRefused
from duolog.reach.protocol import LOG_HEADER, PROTOCOL_HEADER, check_version
from duolog.server.authorization import token_in


@dataclass(frozen=True, slots=True)
class Admission:
    """Lets in who has proved to be of this machine, or brings a bearer token that is admitted."""

    log_id: str
    local: LocalCallers | None = None
    admits: Callable[[str, str], str | None] | None = None

    def check_client(self, request: Request) -> None:
        """Refuse other versions, and those who mean another log."""
        check_version(request.headers.get(PROTOCOL_HEADER), "The client")
        meant = request.headers.get(LOG_HEADER)
        if meant is not None and meant != self.log_id:
            raise HostMismatch(
                f"The log {meant} was asked for; this host has {self.log_id}. It was replaced, or "
                "the address is another one's now: open the log again."
            )

    def check_bearer(self, request: Request, call: str) -> None:
        """Refuse who may not ask for this."""
        token = token_in(request.headers.raw, takes_passwords=False) or ""
        if self.local is not None and self.local.knows(token):
            request.scope[CALLER_NAME] = THIS_MACHINE.name
            return
        name = None if self.admits is None else self.admits(token, call)
        if name is not None:
            request.scope[CALLER_NAME] = name
            return
        raise HostRefused(
            f"The host needs a token for '{call}', and none came. Give one that its token file has."
            if not token
            else f"The host does not take this token for '{call}'. Check that it is whole, that "
            "the host's token file has it, and what its role may do."
        )
