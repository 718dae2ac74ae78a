"""The text that Prometheus reads, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from duolog.bridge.metrics.names import METRICS, Kind, Metric
from duolog.bridge.metrics.tally import Durations, Labels, Sample, Tally

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exposition(tally: Tally, looked_up: Mapping[Metric, Iterable[Sample]]) -> str:
    """All metrics: those that were counted, and those that are looked up when asked for."""
    return "".join(_lines(tally, looked_up))


def _lines(tally: Tally, looked_up: Mapping[Metric, Iterable[Sample]]) -> Iterator[str]:
    found = {**looked_up, **tally.asked()}
    for metric in METRICS:
        if metric.only_when_told and metric not in found:
            continue
        name = metric.full_name
        yield f"# HELP {name} {_help(metric.meaning)}\n# TYPE {name} {metric.kind}\n"
        if metric.kind is Kind.HISTOGRAM:
            for labels, durations in tally.durations(metric):
                yield from _histogram(metric, labels, durations)
            continue
        for labels, number in found.get(metric) or tally.numbers(metric):
            yield f"{name}{_labels(metric.labels, labels)} {_number(number)}\n"


def _histogram(metric: Metric, labels: Labels, durations: Durations) -> Iterator[str]:
    name = metric.full_name
    names = (*metric.labels, "le")
    upto = 0
    for bound, count in zip((*durations.bounds, None), durations.counts, strict=True):
        upto += count
        le = "+Inf" if bound is None else _number(bound)
        yield f"{name}_bucket{_labels(names, (*labels, le))} {upto}\n"
    shown = _labels(metric.labels, labels)
    yield f"{name}_sum{shown} {_number(durations.total)}\n{name}_count{shown} {upto}\n"


def _labels(names: tuple[str, ...], values: Labels) -> str:
    if not names:
        return ""
    pairs = zip(names, values, strict=True)
    return "{" + ",".join(f'{name}="{_value(value)}"' for name, value in pairs) + "}"


def _value(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))
