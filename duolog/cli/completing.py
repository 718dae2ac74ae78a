"""Names that a shell offers for completion: of the log that the line names, or the settings.

Silent whatever happens: somebody is in the middle of typing. A log that is busy offers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import typer

from duolog.printable import one_line

if TYPE_CHECKING:
    from duolog.log import LogAccess

Offered = list[tuple[str, str]]

_PATIENCE_SECONDS: Final = 0.5
_MOST: Final = 200


def topics(ctx: typer.Context, incomplete: str) -> Offered:
    """Topics and their aliases."""

    def names(log: LogAccess) -> Iterable[tuple[str, str]]:
        for topic in log.topics():
            yield topic.name, f"{topic.partitions} partitions"
            if topic.settings.alias:
                yield topic.settings.alias, f"alias of {topic.name}"

    return _offered(ctx, incomplete, names)


def groups(ctx: typer.Context, incomplete: str) -> Offered:
    """Groups that have a position."""

    def names(log: LogAccess) -> Iterable[tuple[str, str]]:
        read: dict[str, set[str]] = {}
        for position in log.group_positions():
            read.setdefault(position.group, set()).add(position.topic)
        return ((group, f"reads {', '.join(sorted(names))}") for group, names in read.items())

    return _offered(ctx, incomplete, names)


def _offered(
    ctx: typer.Context,
    incomplete: str,
    names: Callable[[LogAccess], Iterable[tuple[str, str]]],
) -> Offered:
    with suppress(Exception):
        with _opened(ctx) as log:
            found = sorted(each for each in names(log) if _is_offered(each[0], incomplete))
        return found[:_MOST]
    return []


def _is_offered(name: str, incomplete: str) -> bool:
    """A name is offered as it is, or not at all: shells print what they complete."""
    return name.startswith(incomplete) and one_line(name) == name


def _opened(ctx: typer.Context) -> LogAccess:
    from dataclasses import replace

    from duolog.reach import reach
    from duolog.reach.options import RemoteOptions
    from duolog.settings import load_settings

    given = {name: ctx.params.get(name) for name in ("log", "url", "token")}
    settings = load_settings(given)
    if settings.url is not None and given["log"] is None:
        remote = RemoteOptions(deadline_seconds=2 * _PATIENCE_SECONDS)
        return reach(url=settings.url, token=settings.token_text(), remote=remote)
    options = replace(settings.log_options(), lock_wait_seconds=_PATIENCE_SECONDS)
    return reach(settings.log, options=options)
