"""A topic with its routes as it is stored."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from duolog.errors import UnsupportedFormat
from duolog.log.model import (
    Envelope,
    Expression,
    Filter,
    Format,
    Op,
    PayloadMode,
    Retention,
    Route,
    Topic,
    TopicSettings,
)
from duolog.log.names import LONGEST_SECONDS, MOST_BYTES
from duolog.log.routing.filter.tree import from_json, to_json

VERSION = 3
_READ = (1, 2, VERSION)
# 1 knew nothing of mirrors: its topics wait for theirs, as new ones do.
# 2 knew columns in `partition_by` and no expressions, and had no `columns`.


def topic_to_bytes(topic: Topic) -> bytes:
    settings = asdict(topic.settings)
    fields = {
        "v": VERSION,
        "id": topic.id,
        "name": topic.name,
        "settings": settings,
        "routes": [_route_fields(route) for route in topic.routes],
        "created_at_ms": topic.created_at_ms,
        "updated_at_ms": topic.updated_at_ms,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def topic_from_bytes(stored: bytes) -> Topic:
    fields = json.loads(stored)
    if fields["v"] not in _READ:
        raise UnsupportedFormat(f"A topic is stored as version {fields['v']}. Use a newer Duolog.")
    settings = fields["settings"]
    return Topic(
        id=fields["id"],
        name=fields["name"],
        settings=TopicSettings(
            **{
                **settings,
                "retention": _retention(settings["retention"]),
                "dedup_window_seconds": _bounded(settings["dedup_window_seconds"], LONGEST_SECONDS),
                "key_format": Format(settings["key_format"]),
                "value_format": Format(settings["value_format"]),
                "envelope": Envelope(settings["envelope"]),
            }
        ),
        routes=tuple(_route(route) for route in fields["routes"]),
        created_at_ms=fields["created_at_ms"],
        updated_at_ms=fields["updated_at_ms"],
    )


def _retention(fields: dict[str, Any]) -> Retention:
    return Retention(
        **{
            **fields,
            "seconds": _bounded(fields["seconds"], LONGEST_SECONDS),
            "max_bytes": _bounded(fields["max_bytes"], MOST_BYTES),
        }
    )


def _bounded(number: Any, most: int) -> Any:
    """An older Duolog took any number, and could not work with very large ones."""
    return None if number is None else min(number, most)


def _route_fields(route: Route) -> dict[str, Any]:
    return {
        "table": route.table,
        "ops": sorted(route.ops),
        "filter": None
        if route.filter is None
        else {"text": route.filter.text, "tree": to_json(route.filter.tree)},
        "payload": int(route.payload),
        "partition_by": [
            part if isinstance(part, str) else {"text": part.text, "tree": to_json(part.tree)}
            for part in route.partition_by
        ],
        "columns": None if route.columns is None else list(route.columns),
    }


def _route(fields: dict[str, Any]) -> Route:
    condition, columns = fields["filter"], fields.get("columns")
    return Route(
        table=fields["table"],
        ops=frozenset(Op(op) for op in fields["ops"]),
        filter=None
        if condition is None
        else Filter(condition["text"], from_json(condition["tree"])),
        payload=PayloadMode(fields["payload"]),
        partition_by=tuple(
            part if isinstance(part, str) else Expression(part["text"], from_json(part["tree"]))
            for part in fields["partition_by"]
        ),
        columns=None if columns is None else tuple(columns),
    )
