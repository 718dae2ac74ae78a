"""Why a round into Spark's Python worker takes a hundred milliseconds less with us.

At the begin of each round, of a task as of a plan or a commit, Spark has Python look at its import
paths anew (`importlib.invalidate_caches`), for files that were added since. For each finder of a
zip, Python then reads that archive's table of contents again; and Spark's workers import PySpark
from archives, with a finder for each package in them. They do not change while Spark runs. So
their finders are let go of at the end of a round, and Python makes them again when something is
imported, from the tables that it still has.
"""

from __future__ import annotations

import os
import sys


def let_go_of_sparks_archives() -> None:
    """Spare this process's next round that work. Other archives are looked at as before."""
    spark = os.environ.get("SPARK_HOME")
    if spark is None:
        return
    inside = os.path.join(spark, "")  # noqa: PTH118 - as the paths of finders are written
    for path in list(sys.path_importer_cache):
        if path.startswith(inside) and any(kind in path for kind in (".zip", ".jar")):
            sys.path_importer_cache.pop(path, None)
