"""Metrics: one list, kept by the document and by what Prometheus is given."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import duolog
from duolog.bridge.metrics import names
from duolog.bridge.metrics.bounds import MetricRules, shown_alone
from duolog.bridge.metrics.exposition import exposition
from duolog.bridge.metrics.looked_up import LookedUp
from duolog.bridge.metrics.names import METRICS, Kind, Metric
from duolog.bridge.metrics.tally import Tally
from duolog.errors import InvalidSetting
from duolog.log import LogOptions
from duolog.log.access import Place
from duolog.log.groups_seen import KafkaSeen
from duolog.log.mirror_model import MirrorChange, MirrorTarget, Run
from duolog.log.model import Record, TopicSettings
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


def rules(groups: int = 2, topics: int = 2, **named: str) -> MetricRules:
    return MetricRules.of(
        max_group_partitions=groups,
        max_topic_partitions=topics,
        groups_always=named.get("groups_always", ""),
        topics_always=named.get("topics_always", ""),
    )


@pytest.mark.parametrize(
    ("most", "named", "alone"),
    [
        (0, "", ""),
        (1, "", "a"),
        (3, "", "a"),  # the one with which the limit is reached is shown whole
        (4, "", "ab"),
        (9, "", "abcd"),
        (0, "d", "d"),
        (1, "b", "ab"),
    ],
)
def test_what_matters_most_is_shown_alone(most: int, named: str, alone: str) -> None:
    ranked = [("a", 3), ("b", 1), ("c", 1), ("d", 1)]
    assert shown_alone(ranked, most, lambda key: key in named) == set(alone)


class _TimesCounted:
    """Passes all on, and counts how often and for how many places times are asked for."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.asked: list[int] = []

    def __getattr__(self, name: str) -> Any:
        assert name not in {"fetch", "fetch_encoded", "offsets"}, "asked for each one by itself"
        return getattr(self._log, name)

    def record_times(self, places: Sequence[Place]) -> Any:
        self.asked.append(len(places))
        return self._log.record_times(places)


def test_metrics_do_not_grow_with_groups_and_sums_stay_exact(tmp_path: Path) -> None:
    clock = ManualClock(1_000_000)
    with duolog.open_log(tmp_path / "log", options=LogOptions(clock=clock)) as log:
        log.create_topic("orders", TopicSettings(partitions=2))
        for partition in (0, 1):
            records = [Record(b"%d" % n, partition=partition, ts_ms=n) for n in range(100)]
            log.publish("orders", records)
        for number in range(40):
            log.ack(f"g{number:02}", "orders", 98 - number, 0)
            clock.advance(seconds=1)
        log.ack("g00", "orders", 49, 1)
        counting = cast("Any", _TimesCounted(log))
        looked_up = LookedUp(counting, clock, rules(3, groups_always="g2[01],none"))
        found = looked_up.samples()
        looked_up.samples()
    lags = dict(found[names.GROUP_LAG])
    together = ("", "", "", "native")
    assert {labels[0] for labels in lags} == {"g00", "g39", "g20", "g21", ""}
    assert sum(lags.values()) == sum(1 + number for number in range(40)) + 50
    assert lags["g00", "orders", "1", "native"] == 50
    stalled = dict(found[names.GROUP_STALLED])
    assert stalled[together] == 39  # g01 moved first of those shown together
    assert found[names.GROUPS] == [(("alone",), 4), (("together",), 36)]
    for metric in (names.GROUP_POSITION, names.GROUP_LAG_SECONDS):
        assert len(found[metric]) == 5
        assert together not in dict(found[metric])
    assert counting.asked == [5]  # once, for what is shown; the next look knows them


def test_metrics_do_not_grow_with_topics(tmp_path: Path) -> None:
    with duolog.open_log(tmp_path / "log") as log:
        for number in range(10):
            log.create_topic(f"t{number}")
            log.publish(f"t{number}", Record(b"v" * (1 + 100 * number)))
        total = sum(each.bytes for each in log.all_offsets())
        found = LookedUp(log, ManualClock(), rules(topics=2, topics_always="t0")).samples()
        whole = LookedUp(log, ManualClock()).samples()
    assert {labels[0] for labels, _ in found[names.TOPIC_NEXT]} == {"t9", "t8", "t0"}
    assert {labels[0] for labels, _ in found[names.TOPIC_BYTES]} == {"t9", "t8", "t0", ""}
    assert sum(number for _, number in found[names.TOPIC_BYTES]) == total
    assert found[names.TOPICS] == [(("alone",), 3), (("together",), 7)]
    assert len(whole[names.TOPIC_BYTES]) == 10
    assert whole[names.TOPICS] == [(("alone",), 10), (("together",), 0)]


def test_counters_by_topic_are_bounded_and_never_go_down() -> None:
    tally = Tally(rules(topics=2, topics_always="named-.*"))
    for _ in range(2):
        for topic in ("a", "b", "c", "d", "named-1"):
            tally.add(names.CONSUMED, topic, by=5)
    assert dict(tally.numbers(names.CONSUMED)) == {
        ("a",): 10,
        ("b",): 10,
        ("",): 20,
        ("named-1",): 10,
    }


def test_a_gauge_by_topic_shows_the_highest_and_forgets_what_is_over() -> None:
    tally = Tally(rules(topics=1))
    tally.put_topics(names.RETENTION_HELD, {"a": 1, "b": 7, "c": 2})
    assert dict(tally.numbers(names.RETENTION_HELD)) == {("b",): 7, ("",): 3}
    tally.put_topics(names.RETENTION_HELD, {"c": 2})
    assert dict(tally.numbers(names.RETENTION_HELD)) == {("c",): 2}


def test_limits_and_patterns_that_cannot_be_are_refused_by_name() -> None:
    with pytest.raises(InvalidSetting, match="max_group_partitions must be 0 or more; got -1"):
        rules(-1)
    with pytest.raises(InvalidSetting, match=r"groups_always takes regular expressions.*'\(' is"):
        rules(groups_always="billing, (")
