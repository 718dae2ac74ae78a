"""`duolog token`"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from duolog import output
from duolog.cli import shown
from duolog.cli.options import AsJson, Yes, names
from duolog.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from duolog.bridge.http.tokens import StoredToken

app = typer.Typer(no_args_is_help=True, help="Tokens for those who ask a host.")

_LONGEST_SECONDS: Final = 1e10  # 300 years
_CLOSED_BRACKETS: Final = re.compile(r"\[!?+\]?+[^\]]*\]")  # as fnmatch reads them

TokenFile = Annotated[Path, typer.Option(metavar="F", help="The host's token file.")]
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is.", show_default=False)]


def _expiry(default: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        min=1,
        max=_LONGEST_SECONDS,
        metavar="S",
        help="After so many seconds it ends by itself.",
        show_default=default,
    )
    return option


def _limit(help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="PATTERN", help=help_text, show_default="all"
    )
    return option


@app.command()
def create(
    role: Annotated[
        str, typer.Option(metavar="R", help="user, service, dba or system: what it may do.")
    ],
    name: Annotated[str, typer.Option(metavar="N", help="Whose it is; shown in logs.")],
    file: TokenFile,
    topics: Annotated[
        str | None, _limit("Limit it to topics like orders or orders.*; several with commas.")
    ] = None,
    groups: Annotated[str | None, _limit("Limit it to groups, likewise.")] = None,
    tables: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Tables that it may route; with --topics and without this, none.",
            show_default=False,
        ),
    ] = None,
    subjects: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Subjects of the schema registry; with --topics and without this, it reads those "
            "of its topics.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Of all records it reads those whose value meets this, like `customer = 7`.",
            show_default="all",
        ),
    ] = None,
    expires_seconds: Annotated[float | None, _expiry("never")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a new token, once.

    The file keeps only its hash. A host that uses the file takes the token
    from now on.
    """
    from duolog.bridge.http.callers import Caller, Role
    from duolog.bridge.http.tokens import add_token, condition_of, revoke_token

    caller = Caller(
        name,
        Role.of(role.lower()),
        _patterns(topics, "--topics"),
        _patterns(groups, "--groups"),
        _patterns(tables, "--tables"),
        _patterns(subjects, "--subjects"),
        None if where is None else condition_of(where),
    )
    token = add_token(file, caller, _in_seconds(expires_seconds))
    told = {"name": name, "role": role.lower()}
    _show_new(token, told, file, lambda: revoke_token(file, name), as_json=as_json)


@app.command("list")
def list_tokens(file: TokenFile, as_json: AsJson = False) -> None:
    """Show whose tokens there are, and what they may do."""
    from duolog.bridge.http.tokens import read_tokens

    tokens = read_tokens(file)
    now = SystemClock().now_ms() / 1000
    if as_json:
        for each in tokens:
            output.json_line(_fields(each, now))
    elif not tokens:
        output.note(f"{file} has no tokens: nobody is let in.")
    else:
        has_conditions = any(each.caller.where for each in tokens)
        has_former = any(_former_until(each, now) for each in tokens)
        more = (*(["former"] if has_former else []), *(["where"] if has_conditions else []))
        output.table(
            [
                *("name", "role", "topics", "groups", "tables", "subjects", "expires"),
                *more,
            ],
            [
                [
                    each.caller.name,
                    each.caller.role.word,
                    *(", ".join(limit or ("all",)) for limit in _limits(each)[:2]),
                    ", ".join(each.caller.tables or ("none" if each.caller.topics else "all",)),
                    ", ".join(
                        each.caller.subjects or ("of topics" if each.caller.topics else "all",)
                    ),
                    _shown_end(each, now),
                    *([_shown_former(each, now)] if has_former else []),
                    *([_shown_condition(each)] if has_conditions else []),
                ]
                for each in tokens
            ],
        )


@app.command()
def revoke(name: TokenName, file: TokenFile, yes: Yes = False, as_json: AsJson = False) -> None:
    """Take a token back. Hosts that use the file refuse it at once.

    It ends the former token of the same name, too.
    """
    from duolog.bridge.http.tokens import revoke_token
    from duolog.cli.opening import confirmed

    confirmed(f"Take the token '{name}' back?", yes=yes)
    revoke_token(file, name)
    if as_json:
        output.json_line({"name": name, "revoked": True})
    else:
        output.note(f"Nobody is let in by '{name}' any more.")


@app.command()
def rotate(
    name: TokenName,
    file: TokenFile,
    overlap_seconds: Annotated[
        float,
        typer.Option(
            min=0,
            max=_LONGEST_SECONDS,
            metavar="S",
            help="So long the token before is taken, too; the one before that is not.",
        ),
    ] = 0.0,
    expires_seconds: Annotated[float | None, _expiry("kept as it was")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a new token in the place of one, which may do the same."""
    from duolog.bridge.http.tokens import put_back, read_tokens, rotate_token

    before = [each for each in read_tokens(file) if each.caller.name == name]
    token = rotate_token(
        file,
        name,
        SystemClock().now_ms() / 1000,
        overlap_seconds=overlap_seconds,
        expires_at=_in_seconds(expires_seconds),
    )
    undo = partial(put_back, file, *before)
    _show_new(token, {"name": name}, file, undo, as_json=as_json)


def _show_new(
    token: str, told: dict[str, str], file: Path, undo: Callable[[], None], *, as_json: bool
) -> None:
    """A token that nobody gets to see is taken back."""
    try:
        if as_json:
            output.json_line({**told, "token": token})
        else:
            output.line(token)
        output.flush()
    except BaseException:
        undo()
        raise
    if not as_json:
        output.note(f"This is the only time that it is shown. {file} keeps its hash.")


def _shown_condition(token: StoredToken) -> str:
    return "all" if token.caller.where is None else token.caller.where.text


def _patterns(text: str | None, option: str) -> tuple[str, ...] | None:
    patterns = None if text is None else names(text)
    if patterns is not None and not all(map(str.isprintable, patterns)):
        raise typer.BadParameter("A pattern has printable characters.", param_hint=option)
    for pattern in patterns or ():
        if _has_open_bracket(pattern):
            raise typer.BadParameter(
                f"'{pattern}' opens a bracket that it does not close, so it would match no name "
                "that is meant. Write [ab] for one of these characters, and [[] for a bracket.",
                param_hint=option,
            )
    if patterns == ():
        raise typer.BadParameter("Name at least one, or leave it out.", param_hint=option)
    return patterns


def _has_open_bracket(pattern: str) -> bool:
    """Whether a bracket of a glob stands for itself, because nothing closes it."""
    return "[" in _CLOSED_BRACKETS.sub("", pattern)


def _in_seconds(seconds: float | None) -> int | None:
    return None if not seconds else int(SystemClock().now_ms() / 1000 + seconds)


def _limits(token: StoredToken) -> tuple[tuple[str, ...] | None, ...]:
    caller = token.caller
    return caller.topics, caller.groups, caller.tables, caller.subjects


def _fields(token: StoredToken, now: float) -> dict[str, object]:
    topics, groups, tables, subjects = _limits(token)
    return {
        "name": token.caller.name,
        "role": token.caller.role.word,
        "topics": topics,
        "groups": groups,
        "tables": tables,
        "subjects": subjects,
        "where": token.caller.where and token.caller.where.text,
        "expires_at": token.expires_at,
        "expired": _is_expired(token, now),
        "former_until": _former_until(token, now),
    }


def _is_expired(token: StoredToken, now: float) -> bool:
    return token.expires_at is not None and token.expires_at <= now


def _former_until(token: StoredToken, now: float) -> int | None:
    """Until when the token before is taken, too; None where it is not."""
    is_taken = len(list(token.hashes(now))) > 1
    return token.former_until if is_taken else None


def _shown_former(token: StoredToken, now: float) -> str:
    until = _former_until(token, now)
    return "none" if until is None else f"until {shown.moment(until * 1000)}"


def _shown_end(token: StoredToken, now: float) -> str:
    if token.expires_at is None:
        return "never"
    return "expired" if _is_expired(token, now) else shown.moment(token.expires_at * 1000)
