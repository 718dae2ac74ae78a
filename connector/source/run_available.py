"""What Trigger.AvailableNow is for, with limits that hold, for Spark before 4.2.

There, Spark asks a Python source once how far to go and runs one micro-batch to that place. Either
that is all, and no limit holds, or it is not, and the query ends early. So here the query runs with
an ordinary trigger until it has nothing left to read; with option availableNow the source itself
stops where the log ended when the query began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


def run_available(writer: DataStreamWriter) -> StreamingQuery:
    """Run a query over what there is, in batches within its limits, and stop it.

    What fails in the query is raised; the next run with the same checkpoint goes on from there.
    Without option availableNow, what is written meanwhile is read as well, so that a log that is
    written faster than it is read keeps the query running.
    """
    query = writer.trigger(processingTime="0 seconds").start()
    try:
        query.processAllAvailable()
        failure = query.exception()
        if failure is not None:
            raise failure
    finally:
        query.stop()
    return query
