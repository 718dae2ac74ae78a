"""Consumers, publishers and admins of a log that a host serves. Needs httpx: `duolog[client]`.

    with Consumer("orders", url="http://127.0.0.1:7070", group="billing") as consumer:
        for record in consumer:
            print(record.value)

Everything is there twice, with the same names: for asyncio, and without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.client.admin import Admin
    from duolog.client.async_admin import AsyncAdmin
    from duolog.client.blocking import Consumer, Publisher
    from duolog.client.consumer import AsyncConsumer
    from duolog.client.messages import NewRecord
    from duolog.client.publisher import AsyncPublisher
    from duolog.client.records import ConsumedRecord, RecordTable

__all__ = [
    "Consumer",
    "Publisher",
    "Admin",
    "AsyncConsumer",
    "AsyncPublisher",
    "AsyncAdmin",
    "ConsumedRecord",
    "NewRecord",
    "RecordTable",
]

_ROOMS = {
    "Consumer": "blocking",
    "Publisher": "blocking",
    "Admin": "admin",
    "AsyncConsumer": "consumer",
    "AsyncPublisher": "publisher",
    "AsyncAdmin": "async_admin",
    "ConsumedRecord": "records",
    "NewRecord": "messages",
    "RecordTable": "records",
}


def __getattr__(name: str) -> object:
    # Loaded when first asked for: records and messages need no HTTP.
    if name not in _ROOMS:
        raise AttributeError(f"module 'duolog.client' has no attribute '{name}'")
    return getattr(import_module(f"duolog.client.{_ROOMS[name]}"), name)
