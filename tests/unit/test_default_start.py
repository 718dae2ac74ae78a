"""Who does not say where to begin, begins at the same place by every door."""

from __future__ import annotations

import inspect

from duolog.bridge.http.models import ConsumeRequest
from duolog.bridge.http.starts import SCHEMA, begin_of
from duolog.cli.consume import consume
from duolog.cli.starts import start_of
from duolog.client.options import ConsumerOptions
from duolog.log.model import DEFAULT_START
from duolog.sql import parse


def test_all_doors_have_one_default_start() -> None:
    (statement,) = parse("CONSUME FROM orders")
    in_cli = inspect.signature(consume).parameters["begin"].default
    in_client = ConsumerOptions.of("orders", {"url": "http://127.0.0.1:1"}).start
    assert {
        "http": ConsumeRequest.model_validate({"topic": "orders"}).start,
        "described": begin_of(SCHEMA["default"]),
        "sql": statement.start,  # type: ignore[union-attr]
        "cli": start_of(in_cli, "--from"),
        "client": begin_of(in_client),
    } == dict.fromkeys(("http", "described", "sql", "cli", "client"), DEFAULT_START)
