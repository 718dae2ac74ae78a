"""A warning where a log may lie on a disk that goes away with the job.

In cluster deploy mode the driver runs on whatever node there is, in a container mostly: a log in a
folder there is a new one each time, or none.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

_LOG: Final = logging.getLogger("duolog.connector")
_YARN_CONTAINER: Final = "CONTAINER_ID"
_KUBERNETES_POD: Final = ("KUBERNETES_SERVICE_HOST", "SPARK_DRIVER_BIND_ADDRESS")
_warned: set[str] = set()


def may_be_thrown_away(deploy_mode: str | None, environment: Mapping[str, str]) -> bool:
    """Whether this driver runs on a node of the cluster. The mode is not known everywhere."""
    if deploy_mode is not None:
        return deploy_mode == "cluster"
    in_pod = all(name in environment for name in _KUBERNETES_POD)
    return _YARN_CONTAINER in environment or in_pod


def warn_of_throw_away_disk(path: str | None, deploy_mode: str | None) -> None:
    """Say it once for each log that this process writes to."""
    if path is None or path in _warned or not may_be_thrown_away(deploy_mode, os.environ):
        return
    _warned.add(path)
    _LOG.warning(
        "The driver runs on a node of the cluster, and the log %s is a folder there. If that disk "
        "goes away with the job, so does the log. Give 'url' in place of 'path', or mount a volume "
        "that stays, on one node.",
        path,
    )
