"""Why a function that SQL knows has no place in a filter, or which one was meant."""

from __future__ import annotations

from difflib import get_close_matches

_LISTED = 40
_ROW_ALONE = "a filter sees one change at a time"
_SAME_ANSWER = "a filter must give the same answer when a write is tried again"

_REASONS = {
    **dict.fromkeys(
        (
            *("any_value", "approx_distinct", "array_agg", "avg", "bool_and", "bool_or", "corr"),
            *("count", "every", "grouping", "listagg", "max", "mean", "median", "min", "mode"),
            *("stddev", "string_agg", "sum", "var_pop", "var_samp", "variance"),
        ),
        f"is an aggregate: {_ROW_ALONE}.",
    ),
    **dict.fromkeys(
        (
            *("cume_dist", "dense_rank", "first_value", "lag", "last_value", "lead", "nth_value"),
            *("ntile", "percent_rank", "rank", "row_number"),
        ),
        f"is a window function: {_ROW_ALONE}.",
    ),
    **dict.fromkeys(
        (
            *("clock_timestamp", "current_date", "current_time", "current_timestamp", "getdate"),
            *("localtime", "localtimestamp", "now", "statement_timestamp", "sysdate", "today"),
            *("transaction_timestamp", "unix_timestamp", "utc_timestamp"),
        ),
        f"asks for the time: {_SAME_ANSWER}. Write a date, or compare with a column.",
    ),
    **dict.fromkeys(
        ("gen_random_uuid", "newid", "nextval", "rand", "random", "uuid"),
        f"is different each time: {_SAME_ANSWER}.",
    ),
    **dict.fromkeys(
        ("current_catalog", "current_role", "current_schema", "current_user", "session_user"),
        f"depends on who asks: {_SAME_ANSWER}.",
    ),
    **dict.fromkeys(("all", "any", "some"), "compares with many values: use IN with a list."),
    **dict.fromkeys(("exists",), f"is a subquery: {_ROW_ALONE}."),
}

BARE_CALLS = frozenset(
    ("current_catalog", "current_date", "current_role", "current_schema", "current_time")
) | {"current_timestamp", "current_user", "localtime", "localtimestamp", "session_user"}
"""What SQL calls without parentheses; a column of this name needs double quotes."""


def reason(name: str, allowed: tuple[str, ...]) -> str:
    """What is wrong with calling `name`, which is not among the allowed functions."""
    known = _REASONS.get(name.lower())
    if known is not None:
        return f"`{name}` {known}"
    return f"There is no function `{name}` in a filter. {nearest(name, allowed) or listed(allowed)}"


def nearest(name: str, known: tuple[str, ...]) -> str:
    """A question which of the known names was meant; nothing if none is near."""
    lower = {each.lower(): each for each in reversed(known)}
    close = get_close_matches(name.lower(), lower, n=1)
    return f"Did you mean `{lower[close[0]]}`?" if close else ""


def listed(known: tuple[str, ...]) -> str:
    """What there is instead."""
    more = ", …" if len(known) > _LISTED else ""
    return f"There is: {', '.join(known[:_LISTED])}{more}." if known else "There is none."
