"""Appending, publishing and reading a log that this process has to itself."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Final

from duolog.cli.measure.bars import Measured, Measurement
from duolog.cli.measure.records import RECORD_BYTES, TOPIC, append, batches
from duolog.log import EmbeddedLog, open_log
from duolog.log.model import Mode, Record, Writer
from duolog.log.part import PartBuilder

_SECONDS: Final = 1.0
_PUBLISHERS: Final = (1, 8, 24)
_sync = getattr(os, "fdatasync", os.fsync)


def measure_append(folder: Path, records: int) -> Measurement:
    """One epoch, against a plain file with the same bytes."""
    with open_log(folder / "log") as log:
        builder = PartBuilder(folder / "parts")
        topic = log.create_topic(TOPIC)
        for batch in batches(records):
            builder.add(topic, 0, batch)
        part = builder.finish()
        began = time.perf_counter()
        log.append(Writer(Mode.BATCH, "bench", TOPIC), 0, [part])
        ours = time.perf_counter() - began
    content = os.urandom(part.length)
    with (folder / "plain").open("wb") as plain:
        began = time.perf_counter()
        plain.write(content)
        plain.flush()
        _sync(plain.fileno())
        theirs = time.perf_counter() - began
    megabytes = part.length / 1e6
    return Measurement(
        "append",
        f"{records:,} records as one epoch ({megabytes:.0f} MB packed), durable",
        "MB/s",
        (
            Measured("the log", megabytes / ours),
            Measured("a plain file of the same bytes", megabytes / theirs, is_ours=False),
        ),
    )


def measure_publish(folder: Path, _records: int) -> Measurement:
    """Single records, each durable before its publisher sends the next."""
    with open_log(folder / "log") as log:
        log.create_topic(TOPIC)
        values = [
            Measured(f"{count} publisher{'s' * (count > 1)} at once", _published(log, count))
            for count in _PUBLISHERS
        ]
    return Measurement(
        "publish",
        "one record a call, each durable when it returns",
        "/s",
        (*values, Measured("the disk's syncs, one by one", _syncs(folder), is_ours=False)),
    )


def _published(log: EmbeddedLog, publishers: int) -> float:
    counts = [0] * publishers
    stopped = threading.Event()
    record = Record(b"v" * (RECORD_BYTES - 4), key=b"key0")

    def publish(number: int) -> None:
        while not stopped.is_set():
            log.publish(TOPIC, record)
            counts[number] += 1

    threads = [threading.Thread(target=publish, args=(n,)) for n in range(publishers)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    stopped.wait(_SECONDS)
    stopped.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def _syncs(folder: Path) -> float:
    count = 0
    with (folder / "syncs").open("wb", buffering=0) as file:
        began = time.perf_counter()
        while (seconds := time.perf_counter() - began) < _SECONDS:
            file.write(bytes(RECORD_BYTES))
            _sync(file.fileno())
            count += 1
    return count / seconds


def measure_fetch(folder: Path, records: int) -> Measurement:
    """A log that was just opened, read from its beginning to its end."""
    with open_log(folder / "log") as log:
        log.create_topic(TOPIC)
        append(log, records, folder / "parts")
    with open_log(folder / "log", create=False) as log:
        columns = records / _seconds_of(log, as_columns=True)
    with open_log(folder / "log", create=False) as log:
        objects = records / _seconds_of(log, as_columns=False)
    return Measurement(
        "fetch",
        f"{records:,} records in order, from a log just opened",
        "/s",
        (Measured("as Arrow columns", columns), Measured("as Python records", objects)),
    )


def _seconds_of(log: EmbeddedLog, *, as_columns: bool) -> float:
    at, end = 0, log.offsets(TOPIC)[0].next_offset
    began = time.perf_counter()
    while at < end:
        page = log.fetch(TOPIC, 0, at)
        if not as_columns:
            for _ in page:
                pass
        at = page.next_offset
    return time.perf_counter() - began
