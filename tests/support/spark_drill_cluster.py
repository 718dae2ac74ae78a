"""A Spark cluster on this machine: a master, and workers that pass for two hosts.

Speculation needs it: Spark does not speculate in local mode, nor on a host that has the task.
"""

from __future__ import annotations

import os
import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from duolog.jars.java import find_java

_HOSTS = ("127.0.0.2", "127.0.0.3")
_DEADLINE_SECONDS = 120.0


class ClusterFailed(Exception):
    """A process of the cluster did not start."""


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """Start a master and its workers; the address that a driver takes as its master."""
    folder.mkdir()
    with ExitStack() as ending:
        master = ending.enter_context(_process("master.Master", "--host", "127.0.0.1"))
        address = _said(master, r"Starting Spark master at (spark://\S+)")
        for host in _HOSTS:
            where = ("--host", host, "--work-dir", str(folder / host))
            size = ("--cores", "2", "--memory", "600m")
            worker = ending.enter_context(_process("worker.Worker", *where, *size, address))
            _said(worker, r"(Successfully registered with master)")
        yield address


@contextmanager
def _process(kind: str, *arguments: str) -> Iterator[queue.SimpleQueue[str | None]]:
    """One process of the cluster, and what it says."""
    home = Path(pyspark.__file__).parent
    (core,) = (home / "jars").glob("spark-core_*.jar")
    scala = core.name.removeprefix("spark-core_").partition("-")[0]
    command = [find_java(), "-Xmx256m", "-XX:+UseSerialGC", "-cp", str(home / "jars" / "*")]
    command += [f"org.apache.spark.deploy.{kind}", "--port", "0", "--webui-port", "0", *arguments]
    process = subprocess.Popen(
        command,
        # A worker looks for a source tree to tell Scala's version, unless it is told.
        env={**os.environ, "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": scala},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tempfile.gettempdir(),
    )
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(process, lines), name="duolog-cluster")
    reader.start()
    try:
        yield lines
    finally:
        process.terminate()  # a worker ends its executors
        process.wait(_DEADLINE_SECONDS)
        reader.join(_DEADLINE_SECONDS)


def _read(process: subprocess.Popen[str], lines: queue.SimpleQueue[str | None]) -> None:
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            lines.put(line)
    lines.put(None)


def _said(lines: queue.SimpleQueue[str | None], wanted: str) -> str:
    """Wait for a line; what stands in its brackets."""
    heard = []
    while (line := lines.get(timeout=_DEADLINE_SECONDS)) is not None:
        heard.append(line)
        if found := re.search(wanted, line):
            return found.group(1)
    raise ClusterFailed(f"No '{wanted}' in: {''.join(heard)}")
