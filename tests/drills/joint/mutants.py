"""One-line changes to the product that a drill of joint groups must notice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from duolog.bridge.kafka.members import proxies, proxy
from duolog.bridge.members import admission, kafka_seats, membership

VARIABLE = "JOINT_MUTANT"
HOST: dict[str, Callable[[], None]] = {}
WORKER: dict[str, Callable[[], None]] = {}


def _host(apply: Callable[[], None]) -> Callable[[], None]:
    HOST[apply.__name__] = apply
    return apply


def _worker(apply: Callable[[], None]) -> Callable[[], None]:
    WORKER[apply.__name__] = apply
    return apply


@_host
def nobody_is_waited_for() -> None:
    """What a member is to lose is given away before it has let go."""
    membership._has_let_go = lambda *_: True


@_worker
def begins_where_it_was_known_to_be() -> None:
    """A new owner begins where the log thinks that the group is, without asking Kafka."""

    async def settled(*_: Any) -> bool:
        return True

    proxies.Proxies._is_settled = settled  # type: ignore[method-assign,assignment]


@_worker
def lets_go_at_once() -> None:
    """A proxy does not wait for the acknowledgements of its native member."""
    proxy._DRAIN_SECONDS = 0.0  # type: ignore[misc]


@_host
def acks_of_whoever_asks() -> None:
    """An acknowledgement is sent on, whichever generation it is of."""
    admission.check_ack = lambda *_: None


@_host
def has_only_what_came_last() -> None:
    """What a proxy is given in addition takes the place of what it had."""
    hear = kafka_seats.KafkaSeats.hear

    def heard(self: Any, event: str, said: Any) -> None:
        if event == "member_assigned":
            self._given[said["member"]].clear()
        hear(self, event, said)

    kafka_seats.KafkaSeats.hear = heard  # type: ignore[method-assign]


@_host
def its_proxy_stays() -> None:
    """The worker is not told that a member has gone."""
    tell = kafka_seats.KafkaSeats._tell

    async def told(self: Any, what: str, member_id: str, **more: int) -> None:
        if what != "member_leave":
            await tell(self, what, member_id, **more)

    kafka_seats.KafkaSeats._tell = told  # type: ignore[method-assign]


@_host
def sessions_do_not_end() -> None:
    """However long a member is silent."""
    membership.expired = lambda *_: []


@_worker
def kafka_is_not_waited_for() -> None:
    """A native acknowledgement is confirmed when its commit is on the way."""
    commit = proxy.Proxy.commit

    def confirmed(*asked: Any) -> Future[None]:
        commit(*asked)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    proxy.Proxy.commit = confirmed  # type: ignore[method-assign,assignment]
