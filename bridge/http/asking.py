"""Which topic a caller means, and whether they may use it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.types import Scope

from duolog.bridge.http.answers import Refusal
from duolog.bridge.http.answers_held import Answer
from duolog.bridge.http.callers import ANYBODY, Caller
from duolog.bridge.http.front import CALLER, REQUEST_ID, client_of
from duolog.bridge.http.gate import TOKEN_ENDED
from duolog.bridge.http.host import Host
from duolog.bridge.http.models import MayNameTopic
from duolog.bridge.metrics.names import REFUSED
from duolog.bridge.sql.seen_log import SeenLog, UsedLog
from duolog.bridge.visible_reads import VisibleReads
from duolog.errors import ForbiddenGroup, ForbiddenTopic, UnknownRoute
from duolog.log.model import Topic
from duolog.server.authorization import token_in

ANSWER = "duolog.answer"
"""Where in the scope it says what the request is answered with."""


class RequestRefused(Exception):
    """An answer that ends a request, and is no error of the log."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.error)


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def token_name(scope: Scope) -> str | None:
    """The token by which the caller came in; None where there are none."""
    caller: Caller = scope[CALLER]
    return None if caller is ANYBODY else caller.name


def answer_of(request: Request) -> Answer:
    """What the request is answered with, until its client has taken all of it."""
    answer: Answer = request.scope[ANSWER]
    return answer


def shown_caller(request: Request) -> str:
    """Who asks, for others to read."""
    return (
        f"{caller_of(request).name} at {client_of(request.scope)}, "
        f"request {request.scope[REQUEST_ID]}"
    )


def topic_for(host: Host, request: Request, ask: MayNameTopic) -> Topic:
    """The topic. A token for some topics learns nothing of others, not even that they are there;
    so it is with the group, where one is named.
    """
    try:
        seen = SeenLog(host.log, caller_of(request), host.visible)
        topic = seen.topic(ask.reference, topic_id=ask.expected_id)
        group = getattr(ask, "group_id", None)
        if group is not None:
            seen.check_group(group)
    except (ForbiddenTopic, ForbiddenGroup) as error:
        raise not_theirs(host, error) from None
    return topic


def visible_reads(host: Host, request: Request, topic: Topic) -> VisibleReads | None:
    """The reads of a topic for a sender who may have some of its records only."""
    try:
        return SeenLog(host.log, caller_of(request), host.visible).visible_reads(topic)
    except ForbiddenTopic as error:
        raise not_theirs(host, error) from None


def check_still_let_in(host: Host, request: Request) -> None:
    """Refuse who was let in when a long poll began, and would not be now."""
    doorkeeper = host.doorkeeper
    if doorkeeper.wants_tokens:
        token = token_in(request.scope["headers"])
        if doorkeeper.caller(token) != caller_of(request):
            host.tally.add(REFUSED, "unknown token")
            raise RequestRefused(TOKEN_ENDED)


def check_table(host: Host, request: Request, table: str) -> None:
    """Refuse rows that would go to a topic that the caller may not use."""
    caller = caller_of(request)
    if caller.topics is None:
        return
    try:
        UsedLog(host.log, caller, host.visible).check_table(table)
    except ForbiddenTopic as error:
        raise not_theirs(host, error) from None
    if not host.log.routing_plan().routes_of(table):
        raise UnknownRoute(f"No topic has a route for table '{table}'.")


def not_theirs(host: Host, error: ForbiddenTopic | ForbiddenGroup) -> RequestRefused:
    """Counts it; to be raised."""
    host.tally.add(REFUSED, "topic" if isinstance(error, ForbiddenTopic) else "group")
    return RequestRefused(Refusal(403, "Forbidden", str(error)))
