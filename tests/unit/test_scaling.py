"""The simulation behind docs/scaling.md."""

from __future__ import annotations

import math

import pytest

from bench.scaling import PAGE, PERFORMANCE, tables, with_tables, written_figures
from bench.scaling_model import Costs, sustained, waits

COSTS = Costs(
    sync=0.001,
    call=0.0001,
    http_request=0.001,
    committed_record=1e-7,
    mirrored_record=1e-6,
    spark_record=1e-6,
)


def test_the_tables_in_the_document_come_from_the_figures_beside_it() -> None:
    figures = written_figures(PERFORMANCE.read_text())
    page = PAGE.read_text()
    now = with_tables(page, tables(Costs.of(figures), figures))
    assert page == now, "The figures are others now: python -m bench.scaling --write"


def test_costs_are_what_the_figures_say() -> None:
    figures = written_figures(PERFORMANCE.read_text())
    costs = Costs.of(figures)
    shared = figures["publish", "records in a sync, one record a call"]
    assert shared / (costs.sync + shared * costs.call) == pytest.approx(
        figures["publish", "flat out, one record a call"]
    )
    assert all(cost > 0 for cost in (costs.sync, costs.call, costs.http_request))


def test_a_record_that_is_alone_waits_for_one_sync() -> None:
    middle, high = waits(COSTS, 0.01, over_http=False, records=200) or (0, 0)
    assert middle == pytest.approx(COSTS.sync + COSTS.call)
    assert high == pytest.approx(middle)


def test_records_that_wait_together_share_a_sync() -> None:
    middle, high = waits(COSTS, 5000, over_http=False) or (0, 0)
    alone = COSTS.sync + COSTS.call
    assert alone < middle < high < 5 * alone  # one sync each would never end


@pytest.mark.parametrize(("per_second", "over_http"), [(9_500, False), (950, True)])
def test_what_one_log_cannot_take_is_said(per_second: float, *, over_http: bool) -> None:
    assert waits(COSTS, per_second, over_http=over_http) is None
    assert waits(COSTS, per_second / 2, over_http=over_http) is not None


def test_logs_add_up_while_topics_are_of_one_size() -> None:
    one = sustained(COSTS, 1).records_per_second
    assert one == pytest.approx(1 / COSTS.mirrored_record, rel=0.1)
    assert sustained(COSTS, 8).records_per_second == pytest.approx(8 * one, rel=0.1)


def test_the_largest_topic_is_the_limit_of_many_logs() -> None:
    largest = 1 / sum(1 / rank for rank in range(1, 65))
    few, many = (sustained(COSTS, logs, skew=1.0) for logs in (8, 64))
    assert many.records_per_second == pytest.approx(few.records_per_second, rel=0.05)
    assert many.largest_share == pytest.approx(largest, rel=0.1)
    assert many.records_per_second * largest <= 1.1 / COSTS.mirrored_record


def test_a_slow_commit_is_a_limit_too() -> None:
    slow = Costs(0.001, 0.0001, 0.001, 1e-4, 1e-6, 1e-6)
    assert sustained(slow, 1).records_per_second < 1e4
    assert math.isclose(
        sustained(slow, 1).spark_cores, 2 * sustained(slow, 1).records_per_second * 1e-6
    )
