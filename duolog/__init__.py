"""One log, two tongues: an embedded topic log for change events."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.avro.embedded import open_log
    from duolog.client.admin import Admin
    from duolog.client.async_admin import AsyncAdmin
    from duolog.client.blocking import Consumer, Publisher
    from duolog.client.consumer import AsyncConsumer
    from duolog.client.publisher import AsyncPublisher

__all__ = [
    "Admin",
    "AsyncAdmin",
    "AsyncConsumer",
    "AsyncPublisher",
    "Consumer",
    "Publisher",
    "open_log",
]

_ROOMS = {
    "Admin": "client.admin",
    "AsyncAdmin": "client.async_admin",
    "AsyncConsumer": "client.consumer",
    "AsyncPublisher": "client.publisher",
    "Consumer": "client.blocking",
    "Publisher": "client.blocking",
    "open_log": "avro.embedded",
}


def __getattr__(name: str) -> object:
    # Loaded when first asked for: a Spark task imports duolog where rocksdict is not installed.
    if name not in _ROOMS:
        raise AttributeError(f"module 'duolog' has no attribute '{name}'")
    return getattr(import_module(f"duolog.{_ROOMS[name]}"), name)
