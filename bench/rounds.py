"""Measuring side by side: contenders take turns, so that the machine's drift meets them all."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from bench.figures import Figure, Target

Samples = dict[str, list[float]]


def take_turns(rounds: int, contenders: Mapping[str, Callable[[], float]]) -> Samples:
    """Run each contender once a round; who begins changes from round to round."""
    names = list(contenders)
    samples: Samples = {name: [] for name in names}
    for number in range(rounds):
        for at in range(len(names)):
            name = names[(number + at) % len(names)]
            settle_disk()
            samples[name].append(contenders[name]())
    return samples


def settle_disk() -> None:
    """Write out what others have left, so that nobody pays for it while being measured."""
    os.sync()


def figure(
    name: str,
    unit: str,
    values: Sequence[float],
    reference: Sequence[float] | None = None,
    target: Target | None = None,
) -> Figure:
    """The median of the rounds against the median of the reference's rounds."""
    return Figure(
        name,
        median(values),
        unit,
        median(reference) if reference else None,
        target,
        min(values),
        max(values),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def seconds_of(work: Callable[[], object]) -> float:
    """How long it takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
