"""Which topic a caller means, and whether they may use it."""

from __future__ import annotations

from starlette.requests import Request

from duolog.bridge.http.answers import Refusal
from duolog.bridge.http.callers import Caller
from duolog.bridge.http.front import REQUEST_ID, client_of
from duolog.bridge.http.gate import CALLER
from duolog.bridge.http.host import Host
from duolog.bridge.metrics.names import REFUSED
from duolog.errors import UnknownRoute, UnknownTopic
from duolog.log.model import Topic


class RequestRefused(Exception):
    """An answer that ends a request, and is no error of the log."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.error)


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[CALLER]
    return caller


def shown_caller(request: Request) -> str:
    """Who asks, for others to read."""
    return (
        f"{caller_of(request).name} at {client_of(request.scope)}, "
        f"request {request.scope[REQUEST_ID]}"
    )


def topic_for(host: Host, request: Request, reference: str | int) -> Topic:
    """The topic. A token for some topics learns nothing of others, not even that they are there."""
    caller = caller_of(request)
    try:
        topic = host.log.topic(reference)
    except UnknownTopic:
        if caller.topics is None:
            raise
        if caller.may_use(str(reference)):
            raise UnknownTopic(f"There is no topic {reference!r}.") from None
        raise _forbidden(host, caller, str(reference)) from None
    check_topics(host, caller, (topic,), str(reference))
    return topic


def check_table(host: Host, request: Request, table: str) -> None:
    """Refuse rows that would go to a topic that the caller may not use."""
    caller = caller_of(request)
    if caller.topics is None:
        return
    routes = host.log.routing_plan().routes_of(table)
    check_topics(host, caller, tuple(topic for topic, _ in routes), table)
    if not routes:
        raise UnknownRoute(f"No topic has a route for table '{table}'.")


def check_topics(host: Host, caller: Caller, topics: tuple[Topic, ...], reference: str) -> None:
    """Refuse a caller who may not use all of these."""
    if not all(caller.may_use(topic.name) for topic in topics):
        raise _forbidden(host, caller, reference)


def _forbidden(host: Host, caller: Caller, reference: str) -> RequestRefused:
    host.tally.add(REFUSED, "topic")
    return RequestRefused(
        Refusal(
            403,
            "Forbidden",
            f"The token '{caller.name}' is limited to other topics than '{reference}' leads to.",
        )
    )
