"""Spark looks for modules called pyspark_* and finds `format("duolog")` in this one."""

from __future__ import annotations

import pyspark

# Before 4.1 there is no streaming writer on Arrow. A module that fails here would take every other
# data source down with it.
if tuple(int(part) for part in pyspark.__version__.split(".")[:2]) >= (4, 1):
    from duolog.connector.data_source import DuologSource as DefaultSource

    __all__ = ["DefaultSource"]
