"""All measurements, in their order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duolog.cli.measure.bars import Measurement

if TYPE_CHECKING:
    from duolog.bridge.kafka.settings import KafkaSettings

NAMES: Final = ("append", "publish", "fetch", "consume", "mirror")
NEEDS_KAFKA: Final = "mirror"

Measure = Callable[[Path, int], Measurement]
"""In an empty folder, with about so many records."""


def measures(kafka: KafkaSettings | None) -> dict[str, Measure]:
    """Those that can be made, by name; the mirror only where there is a Kafka."""
    from duolog.cli.measure.disk import measure_append, measure_fetch, measure_publish
    from duolog.cli.measure.host import measure_consume

    found: dict[str, Measure] = {
        "append": measure_append,
        "publish": measure_publish,
        "fetch": measure_fetch,
        "consume": measure_consume,
    }
    if kafka is not None:
        from duolog.cli.measure.mirror import measure_mirror

        found[NEEDS_KAFKA] = partial(measure_mirror, settings=kafka)
    return found
