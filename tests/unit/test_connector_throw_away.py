"""A log on a disk that may go away with the job is warned of, once."""

from __future__ import annotations

import logging

import pytest

from duolog.connector import throw_away
from duolog.connector.throw_away import may_be_thrown_away, warn_of_throw_away_disk

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "SPARK_DRIVER_BIND_ADDRESS": "10.0.0.2"}


@pytest.mark.parametrize(
    ("mode", "environment", "may_be"),
    [
        ("cluster", {}, True),
        ("client", {"CONTAINER_ID": "c"}, False),
        (None, {}, False),
        (None, {"CONTAINER_ID": "c"}, True),
        (None, POD, True),
        (None, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, False),
    ],
)
def test_where_a_disk_may_go_away(
    mode: str | None, environment: dict[str, str], may_be: bool
) -> None:
    assert may_be_thrown_away(mode, environment) is may_be


def test_it_is_said_once_for_each_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throw_away, "_warned", set())
    for path in ("a.log", "a.log", "b.log", None):
        warn_of_throw_away_disk(path, "cluster")
    warn_of_throw_away_disk("c.log", "client")
    told = [record.getMessage() for record in caplog.records]
    assert ["a.log" in told[0], "b.log" in told[1], len(told)] == [True, True, 2]
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
