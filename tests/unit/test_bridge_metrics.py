"""Metrics: one list, kept by the document and by what Prometheus is given."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

import duolog
from duolog.bridge.metrics import names
from duolog.bridge.metrics.exposition import exposition
from duolog.bridge.metrics.looked_up import LookedUp
from duolog.bridge.metrics.names import METRICS, Kind, Metric
from duolog.bridge.metrics.tally import Tally
from duolog.log import LogOptions
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import MirrorChange, MirrorTarget, Run
from duolog.log.model import Record
from tests.support.clock import ManualClock

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "http.md"
SAMPLE = re.compile(r'[a-z_]+(\{([a-z_]+="([^"\\\n]|\\.)*",?)+\})? [0-9.e+-]+|.*le="\+Inf".*')


def test_every_metric_is_in_the_guide_with_its_meaning() -> None:
    rows = re.findall(
        r"^\| `(duolog_\w+)` \| (\w+) \| (.*) \| (.*) \|$", GUIDE.read_text(), re.MULTILINE
    )
    assert rows == [
        (each.full_name, str(each.kind), ", ".join(each.labels), each.meaning) for each in METRICS
    ]


def test_names_are_as_prometheus_wants_them() -> None:
    assert len({each.name for each in METRICS}) == len(METRICS)
    for each in METRICS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", each.name)
        assert each.name.endswith("_total") == (each.kind is Kind.COUNTER)
        assert bool(each.bounds) == (each.kind is Kind.HISTOGRAM)
        assert list(each.bounds) == sorted(each.bounds)
        assert each.meaning.endswith(".")


def test_the_text_has_every_metric_and_counts_add_up() -> None:
    tally = Tally()
    tally.add(names.REQUESTS, "/healthz", "200")
    tally.add(names.REQUESTS, "/healthz", "200")
    for seconds in (0.001, 0.002, 99.0):
        tally.note(names.REQUEST_SECONDS, "/metrics", seconds=seconds)
    text = exposition(tally, {names.GROUP_LAG: [(('a"\\\n', "orders", "0", "native"), 3.0)]})
    lines = text.splitlines()
    for each in METRICS:
        is_shown = f"# TYPE {each.full_name} {each.kind}" in lines
        assert is_shown != each.only_when_told
    assert 'duolog_http_requests_total{endpoint="/healthz",status="200"} 2' in lines
    bucket = 'duolog_http_request_seconds_bucket{endpoint="/metrics",le='
    assert f'{bucket}"0.001"}} 1' in lines
    assert f'{bucket}"0.0025"}} 2' in lines
    assert f'{bucket}"30"}} 2' in lines
    assert f'{bucket}"+Inf"}} 3' in lines
    assert 'duolog_http_request_seconds_count{endpoint="/metrics"} 3' in lines
    assert 'duolog_http_request_seconds_sum{endpoint="/metrics"} 99.003' in lines
    lag = 'consumergroup="a\\"\\\\\\n",topic="orders",partition="0",side="native"'
    assert f"duolog_consumergroup_lag{{{lag}}} 3" in lines
    assert all(SAMPLE.fullmatch(line) for line in lines if not line.startswith("#"))


def test_a_counter_without_labels_is_there_before_it_counts() -> None:
    assert "\nduolog_poll_conflicts_total 0\n" in exposition(Tally(), {})


def test_what_others_tell_is_shown_while_they_tell_it() -> None:
    tally, told = Tally(), {names.MIRROR_SKIPPED: [((), 3.0)]}
    tally.ask(lambda: told)
    assert "\nduolog_mirror_skipped_total 3\n" in exposition(tally, {})
    assert "duolog_mirror_foreign_total" not in exposition(tally, {})
    told.clear()
    assert "duolog_mirror" not in exposition(tally, {})


def test_wrong_labels_are_a_mistake_in_the_program() -> None:
    with pytest.raises(ValueError, match="http_requests_total has the labels"):
        Tally().add(names.REQUESTS, "/healthz")
    without_bounds = Metric("x", Kind.HISTOGRAM, "None.")
    with pytest.raises(ValueError, match="without buckets"):
        Tally().note(without_bounds, seconds=1)


def test_threads_lose_no_count() -> None:
    tally = Tally()

    def count() -> None:
        for _ in range(2000):
            tally.add(names.POLL_CONFLICTS)
            tally.note(names.POLL_SECONDS, "records", seconds=0.1)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tally.number(names.POLL_CONFLICTS) == 8000
    ((_, durations),) = tally.durations(names.POLL_SECONDS)
    assert sum(durations.counts) == 8000


def test_a_group_is_told_of_on_both_sides(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    with duolog.open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        log.create_topic("orders")
        log.publish("orders", [Record(b"%d" % n, ts_ms=990_000) for n in range(10)])
        target = MirrorTarget("cluster", "orders", "id", 1, 0, 0, 100)
        version = log.begin_mirror("orders", 0, target).version
        log.change_mirror("orders", 0, MirrorChange(version, 0, 0, (Run(0, 100, 10),)))
        moved = log.ack("g", "orders", 7)
        seen = KafkaSeen(foreign=103)
        log.remember_kafka("g", "orders", 0, seen, expected_version=moved.version)
        found = LookedUp(log, clock).samples()
    native, kafka = (("g", "orders", "0", side) for side in ("native", "kafka"))
    assert found[names.GROUP_POSITION] == [(native, 8.0), (kafka, 3.0)]
    assert found[names.GROUP_LAG] == [(native, 2.0), (kafka, 7.0)]
    assert found[names.GROUP_LAG_SECONDS] == [(native, 10.0), (kafka, 10.0)]
    assert [labels for labels, _ in found[names.GROUP_STALLED]] == [native]
