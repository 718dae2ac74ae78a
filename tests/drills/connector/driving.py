"""A Spark driver with its own JVM: runs streams as it is told, and tells their ends.

`python -m tests.drills.connector.driving '{"folder": …, "configuration": …}'` takes a line of JSON
for each stream to start. It is the leader of a process group, which its JVM is part of too.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.drills.connector.changes import SCHEMA
from tests.drills.connector.places import ADDRESS, arm, reached
from tests.drills.connector.streams import Stream
from tests.drills.worker import say
from tests.support.children import ROOT
from tests.support.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_CONFIGURATION = {
    # For JVMs that live for seconds.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    # A file is read by several tasks, in several batches each.
    "spark.sql.files.maxPartitionBytes": "12k",
    "spark.sql.files.openCostInBytes": "1k",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
}


def main() -> None:
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    os.setpgid(0, 0)
    asked = json.loads(sys.argv[1])
    folder = Path(asked["folder"])
    _arm_workers(folder)
    arm()
    with ExitStack() as ending:
        for_executors = {
            f"spark.executorEnv.{name}": os.environ[name] for name in (ADDRESS, "PYTHONPATH")
        }
        configuration = {**_CONFIGURATION, **for_executors, **asked["configuration"]}
        spark = ending.enter_context(spark_session(folder, configuration))
        say(["ready", os.getpid()])
        for line in sys.stdin:
            query = _started(spark, Stream(**_with_paths(json.loads(line))))
            thread = threading.Thread(target=_tell_end, args=query)
            thread.start()
            ending.callback(thread.join)


def _arm_workers(folder: Path) -> None:
    """Python runs a module of this name at its start, wherever on the path it lies."""
    module = folder / "armed" / "sitecustomize.py"
    module.parent.mkdir()
    module.write_text("from tests.drills.connector.places import arm\n\narm()\n")
    os.environ["PYTHONPATH"] = os.pathsep.join((str(module.parent), str(ROOT)))


def _with_paths(fields: dict[str, Any]) -> dict[str, Any]:
    return {**fields, **{name: Path(fields[name]) for name in ("log", "files", "checkpoint")}}


def _started(spark: SparkSession, stream: Stream) -> tuple[Stream, StreamingQuery]:
    """A query that takes what is there, a file at a time, and ends."""
    from duolog.connector import write_stream

    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    rows = reader.json(str(stream.files))
    options = {
        "path": str(stream.log),
        "table": stream.table,
        "keyColumns": "id",
        "txnAppId": stream.name,
        "smallBatchRows": str(stream.small_batch_rows),
    }
    if stream.door == "source":
        writer = rows.writeStream.format("duolog").options(**options)
    else:
        writer = write_stream(rows, options)
    # Two runs of one stream may be there at once, as after a driver that is only thought dead.
    writer = writer.queryName(stream.checkpoint.name)
    writer = writer.option("checkpointLocation", str(stream.checkpoint))
    return stream, writer.trigger(availableNow=True).start()


def _tell_end(stream: Stream, query: StreamingQuery) -> None:
    error = None
    try:
        query.awaitTermination()
    except Exception as failed:
        error = str(failed)
    reached("ended", stream.name, error=error, checkpoint=str(stream.checkpoint))


if __name__ == "__main__":
    main()
