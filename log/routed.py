"""Rows of a table as the records that the routes make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from duolog.errors import InvalidRequest, InvalidRows, UnknownRoute
from duolog.log.catalogue import Catalogue
from duolog.log.fetched import Fetched, FetchedBatch
from duolog.log.model import Op, Record, Topic, Unrouted
from duolog.log.names import check_text_name, check_unicode
from duolog.log.record_check import check_time
from duolog.log.routing.changes import Changes
from duolog.log.routing.codec import Codecs
from duolog.log.routing.plan import RoutingPlan
from duolog.log.routing.route import Routed, route


def routed_records(
    catalogue: Catalogue,
    codecs: Codecs,
    table: str,
    op: Op,
    rows: Any,
    key_columns: Sequence[str],
    *,
    ts_ms: int,
    before: Any = None,
    unrouted: Unrouted = Unrouted.FAIL,
) -> list[tuple[Topic, Record]]:
    """The records of these rows, each with its topic."""
    check_text_name(table, "table")
    check_time(ts_ms)
    if type(op) is not Op:
        raise InvalidRows(f"Rows of table '{table}' come with an Op; got {op!a:.40}.")
    if unrouted not in tuple(Unrouted):
        raise InvalidRequest(f"unrouted is fail or drop; got {unrouted!a:.40}.")
    for column in key_columns:
        check_unicode(column, "key column")
    changes = Changes.from_rows(table, op, rows, tuple(key_columns), ts_ms, before)
    routed = route(changes, catalogue.plan, codecs)
    check_all_routed(catalogue.plan, changes, routed, unrouted)
    found: list[tuple[Topic, Record]] = []
    for share in routed.records:
        topic = catalogue.by_id[share.topic_id]
        batch = FetchedBatch(0, share.records)
        found.extend(
            (
                topic,
                Record(
                    record.value,
                    record.key,
                    record.headers,
                    share.partition,
                    record.ts_ms,
                    record.op,
                    record.table,
                    record.payload,
                ),
            )
            for record in Fetched(topic.name, share.partition, 0, 0, 0, (batch,))
        )
    return found


def check_all_routed(
    plan: RoutingPlan, changes: Changes, routed: Routed, unrouted: Unrouted
) -> None:
    """Refuse changes that no route takes, unless they are to be dropped."""
    if unrouted == Unrouted.DROP:
        return
    table = changes.table
    if not plan.routes_of(table):
        known = ", ".join(sorted(plan.tables)[:5]) or "none"
        raise UnknownRoute(
            f"No topic has a route for table '{table}' (tables that have: {known}). Add one first, "
            "or say unrouted=drop."
        )
    if routed.unrouted:
        raise UnknownRoute(
            f"{routed.unrouted} of {len(changes)} changes of table '{table}' have an operation "
            "that no route takes. Add a route for it, or say unrouted=drop to leave them out."
        )
