"""Has the groups that a request begins counted for the token that it came with."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from duolog.bridge.http.access import INTERNAL
from duolog.bridge.http.callers import ANYBODY, THIS_MACHINE, Caller
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.front import CALLER, ENDPOINT
from duolog.log.group_allowance import GroupAllowance, on_behalf_of
from duolog.server.authorization import token_in


class GroupsCounted:
    """Behind the gate, in front of all endpoints: groups begin in several of them."""

    def __init__(self, application: ASGIApp, doorkeeper: Doorkeeper, max_groups: int) -> None:
        self._application = application
        self._doorkeeper = doorkeeper
        self._max_groups = max_groups

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        with on_behalf_of(self._allowance(scope)):
            await self._application(scope, receive, send)

    def _allowance(self, scope: Scope) -> GroupAllowance | None:
        caller: Caller | None = scope[CALLER]
        if scope[ENDPOINT] == INTERNAL:  # which the gate leaves to the calls themselves
            caller = self._doorkeeper.caller(token_in(scope["headers"]))
        if caller is None or caller in (ANYBODY, THIS_MACHINE):
            return None
        return GroupAllowance(caller.name, self._max_groups)
