"""Changes to the host that the drill must notice. Each would be one line in the product.

`python -m tests.drills.edge.mutants NAME serve …` applies one, and then is `duolog serve …`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

MUTANTS: dict[str, Callable[[], None]] = {}


def _mutant(apply: Callable[[], None]) -> Callable[[], None]:
    MUTANTS[apply.__name__] = apply
    return apply


@_mutant
def tokens_never_end() -> None:
    """A token counts after its end too."""
    from duolog.bridge.http.tokens import StoredToken

    StoredToken.hashes = lambda self, _: iter((self.sha256,))


@_mutant
def roles_are_not_looked_at() -> None:
    """Whoever brings a token may do everything."""
    from duolog.bridge.http import gate, sql

    gate.lacks = lambda *_: None
    sql.lacks = lambda *_: None


@_mutant
def unknown_paths_go_to_the_framework() -> None:
    """A path that the table of roles does not have is routed all the same."""
    from duolog.bridge.http import gate

    gate.OTHER = "no endpoint"


@_mutant
def connections_have_no_limit() -> None:
    """As many connections as clients like."""
    from duolog.bridge.serve.connections import ConnectionRules

    ConnectionRules.within = lambda self, _: replace(self, max_connections=10**9)


@_mutant
def conditions_are_left_out() -> None:
    """A token's condition on records is not looked at."""
    from duolog.bridge.sql.seen_log import SeenLog

    SeenLog.visible_reads = lambda *_: None


@_mutant
def requests_take_any_memory() -> None:
    """What large requests take is not counted."""
    from duolog.server.request_memory import RequestMemory

    RequestMemory.check = lambda *_: None
    RequestMemory.take_now = lambda *_: None

    async def wait_for(*_: Any) -> None: ...

    RequestMemory.wait_for = wait_for


@_mutant
def topics_have_no_owners() -> None:
    """A token's patterns of topics are not looked at."""
    from duolog.bridge.http.callers import Caller

    Caller.may_use = lambda *_: True


@_mutant
def writers_have_no_owners() -> None:
    """A writer of a limited token is the writer of that name."""
    from duolog.bridge.http.callers import Caller

    Caller.own_writer = lambda _, writer: writer


@_mutant
def parts_have_any_name() -> None:
    """A part's name is not looked at before it is a path."""
    from duolog.log import staging

    staging._NAME = re.compile(".*", re.DOTALL)


@_mutant
def some_requests_raise() -> None:
    """A handler raises for requests that nobody thought of."""
    from duolog.bridge.http.topics import Topics

    latest_offsets = Topics.latest_offsets

    async def raise_for_some(self: Topics, request: Any, ask: Any) -> Any:
        if not str(ask.reference).isascii() or len(str(ask.reference)) > 6:
            raise ZeroDivisionError
        return await latest_offsets(self, request, ask)

    Topics.latest_offsets = raise_for_some


@_mutant
def some_requests_keep_memory() -> None:
    """With each body that was read, ten megabytes are kept."""
    from duolog.bridge.http import bodies

    replay, kept = bodies._replay, []

    def keep(body: bytes, receive: Any) -> Any:
        kept.append(bytes(range(256)) * 40_000)
        return replay(body, receive)

    bodies._replay = keep


@_mutant
def some_requests_are_never_answered() -> None:
    """A poll without a group waits for ever."""
    import asyncio

    from duolog.bridge.http.consuming import Consuming

    consume = Consuming.consume

    async def wait_for_ever(self: Consuming, request: Any, ask: Any) -> Any:
        if ask.group_id is None:
            await asyncio.Event().wait()
        return await consume(self, request, ask)

    Consuming.consume = wait_for_ever


def main() -> None:
    name, *arguments = sys.argv[1:]
    MUTANTS[name]()
    from duolog.cli import main as run

    sys.argv = ["duolog", *arguments]
    run()


if __name__ == "__main__":
    main()
