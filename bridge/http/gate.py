"""Lets in who may ask: a known token, with a role that is high enough."""

from __future__ import annotations

import re
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from duolog.avro.registry.subject_access import limit_subjects
from duolog.bridge.http.access import OTHER, REGISTRY, lacks, need_of
from duolog.bridge.http.answers import NO_SUCH_PATH, Refusal, json_response
from duolog.bridge.http.callers import ANYBODY
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.front import CALLER, ENDPOINT
from duolog.bridge.http.pages import Origin, brings_what_a_browser_keeps, is_of_another_site
from duolog.bridge.metrics.names import REFUSED
from duolog.bridge.metrics.tally import Tally
from duolog.server.address import is_loopback
from duolog.server.authorization import token_in

_NO_TOKEN = Refusal(
    401,
    "Unauthorized",
    "This needs a token. Send it as: Authorization: Bearer TOKEN. Make one with: duolog token "
    "create",
)
_FOREIGN_NAME = Refusal(
    403,
    "Forbidden",
    "Without tokens this host answers only to names of this machine, like localhost: a page in a "
    "browser could reach it by another. Ask it by 127.0.0.1, or give it tokens.",
)
_FOREIGN_PAGE = Refusal(
    403,
    "Forbidden",
    "A page of another site asked for this in a browser, and it is not this host's own. Programs "
    "leave the headers Origin and Sec-Fetch-Site out.",
)
_UNKNOWN_TOKEN = Refusal(
    401,
    "Unauthorized",
    "The token is not one of this host's. Check for a missing end, or have a new one made.",
)
TOKEN_ENDED = Refusal(
    401,
    "Unauthorized",
    "The token was taken back, has ended or was changed while the request was under way.",
)
_A_MOMENT_SECONDS = 0.1
_HOST = re.compile(r"(?:\[([^\]]*)\]|([^:]*))(?::[0-9]*)?")


class Gate:
    """In front of all endpoints, before a body is read."""

    def __init__(
        self,
        application: ASGIApp,
        doorkeeper: Doorkeeper,
        tally: Tally,
        *,
        users_consume: bool,
        advertised: Origin | None = None,
    ) -> None:
        self._application = application
        self._doorkeeper = doorkeeper
        self._tally = tally
        self._users_consume = users_consume
        self._advertised = advertised

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is None and scope[ENDPOINT] == OTHER:
                # Not left to the framework: to it, a path with a line end behind it is that path.
                refusal = NO_SUCH_PATH
            if refusal is not None:
                await _answer(scope, receive, send, refusal)
                return
            if scope[CALLER] is not ANYBODY:
                await self._while_let_in(scope, receive, send)
                return
        await self._application(scope, receive, send)

    async def _while_let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A body may take its time. If the token has ended when all of it is there, the application
        hears that the client has left, and does nothing.
        """
        began = time.monotonic()
        is_refused = has_begun = False

        async def heard() -> Message:
            nonlocal is_refused
            if is_refused:
                return {"type": "http.disconnect"}
            message = await receive()
            is_whole = message["type"] == "http.request" and not message.get("more_body")
            if is_whole and not has_begun and time.monotonic() - began > _A_MOMENT_SECONDS:
                caller = self._doorkeeper.caller(token_in(scope["headers"]))
                if caller != scope[CALLER]:
                    is_refused = True
                    return {"type": "http.disconnect"}
            return message

        async def answer(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            if not is_refused:
                await send(message)

        await self._application(scope, heard, answer)
        if is_refused:
            self._tally.add(REFUSED, "unknown token")
            await _answer(scope, receive, send, TOKEN_ENDED)

    def _refusal(self, scope: Scope) -> Refusal | None:
        need = need_of(scope[ENDPOINT], scope["method"], users_consume=self._users_consume)
        scope[CALLER] = ANYBODY
        wants_tokens = self._doorkeeper.wants_tokens
        could_be_any_page = not wants_tokens or brings_what_a_browser_keeps(scope)
        if could_be_any_page and is_of_another_site(scope, self._advertised):
            self._tally.add(REFUSED, "page")
            return _FOREIGN_PAGE
        if not wants_tokens:
            if self._is_asked_by_own_name(scope):
                return None
            self._tally.add(REFUSED, "name")
            return _FOREIGN_NAME
        if need.role is None:
            return None
        token = token_in(scope["headers"])
        caller = self._doorkeeper.caller(token)
        if caller is None:
            self._tally.add(REFUSED, "no token" if token is None else "unknown token")
            return _NO_TOKEN if token is None else _UNKNOWN_TOKEN
        scope[CALLER] = caller
        why = lacks(caller, need)
        if why is not None:
            self._tally.add(REFUSED, "role")
            return Refusal(403, "Forbidden", why)
        if scope[ENDPOINT] == REGISTRY and caller.is_limited_to_subjects:
            limit_subjects(scope, caller.may_use_subject)
        return None

    def _is_asked_by_own_name(self, scope: Scope) -> bool:
        """A browser sends the name that it looked up, which a page may have pointed here. Who
        sends several names may mean any of them.
        """
        return all(self._is_own_name(value) for name, value in scope["headers"] if name == b"host")

    def _is_own_name(self, value: bytes) -> bool:
        written = _HOST.fullmatch(value.decode("latin-1"))
        bare = "" if written is None else written[1] or written[2]
        is_advertised = self._advertised is not None and bare == self._advertised.name
        return is_advertised or is_loopback(bare)


async def _answer(scope: Scope, receive: Receive, send: Send, refusal: Refusal) -> None:
    response = refusal.response()
    if scope[ENDPOINT] == REGISTRY:  # its clients know another form
        response = json_response(
            {"error_code": refusal.status, "message": refusal.error}, refusal.status
        )
    if refusal.status == 401:
        response.headers["www-authenticate"] = 'Bearer realm="duolog", Basic realm="duolog"'
    await response(scope, receive, send)
