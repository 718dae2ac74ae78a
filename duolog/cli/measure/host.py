"""Reading through a host, which is a process of its own, as applications do."""

from __future__ import annotations

import http.client
import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from duolog.cli.measure.bars import Measured, Measurement
from duolog.cli.measure.records import TOPIC, append
from duolog.errors import HostFailed
from duolog.log import open_log

_ARROW: Final = "application/vnd.apache.arrow.stream"
_AT_ONCE: Final = {"json": 10_000, "arrow": 100_000}
_ENDS_WITHIN_SECONDS: Final = 30


def measure_consume(folder: Path, records: int) -> Measurement:
    """Everything over HTTP, in both forms of an answer."""
    with open_log(folder / "log") as log:
        log.create_topic(TOPIC)
        append(log, records, folder / "parts")
    fewer = max(1, records // 5)  # JSON is a good deal slower
    with _served(folder / "log") as port, closing(_connected(port)) as host:
        _read(host, 1000, "arrow")
        arrow = records / _read(host, records, "arrow")
        text = fewer / _read(host, fewer, "json")
    return Measurement(
        "consume",
        f"{records:,} records through a host, by one reader",
        "/s",
        (Measured("as Arrow", arrow), Measured("as JSON", text)),
    )


@contextmanager
def _served(log: Path) -> Iterator[int]:
    command = ["serve", "--log", str(log), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, "-P", "-m", "duolog.cli", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None  # noqa: S101 - it is a pipe
        port = urlsplit(process.stdout.readline().strip()).port
        if port is None:
            raise HostFailed(
                "`duolog serve` has ended before it could be asked. Run it by hand to see why; it "
                "takes duolog[bridge]."
            )
        yield port
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _connected(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def _read(host: http.client.HTTPConnection, records: int, form: str) -> float:
    """How long it takes to read so many and unpack them."""
    import pyarrow as pa

    at = 0
    headers = {"Content-Type": "application/json"}
    if form == "arrow":
        headers["Accept"] = _ARROW
    began = time.perf_counter()
    while at < records:
        ask = {
            "topic": TOPIC,
            "partition_id": 0,
            "start": {"Offset": at},
            "limit": min(_AT_ONCE[form], records - at),
            "timeout_seconds": 0,
        }
        host.request("POST", "/v1/api/topics/consume", json.dumps(ask), headers)
        answer = host.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise HostFailed(f"The host answered {answer.status}: {body[:200]!r}.")
        if form == "arrow":
            at += sum(batch.num_rows for batch in pa.ipc.open_stream(io.BytesIO(body)))
        else:
            at += len(json.loads(body)["messages"])
    return time.perf_counter() - began
