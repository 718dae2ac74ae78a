"""The node's data folder: made once, and whose it is."""

from __future__ import annotations

import re
import secrets
import subprocess
import tempfile
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

from duolog.bridge.kafka.local.trouble import told
from duolog.errors import LocalKafkaFailed

_FORMAT_SECONDS = 60


def cluster_of(data: Path) -> str | None:
    """The cluster's id; None while the folder is not formatted, which Kafka notes last."""
    try:
        noted = (data / "meta.properties").read_text()
    except FileNotFoundError:
        return None
    found = re.search(r"^cluster\.id=(\S+)$", noted, re.MULTILINE)
    return found[1] if found else None


def format_storage(
    java: str, jars: list[Path], settings: Path, data: Path, secret_arguments: Sequence[str] = ()
) -> str:
    """Make the data folder with Kafka's own tool; the id of the new cluster."""
    with tempfile.NamedTemporaryFile("w", suffix=".arguments") as file:
        # From a file, where no list of processes shows them.
        file.writelines(f"{argument}\n" for argument in secret_arguments)
        file.flush()
        return _format(java, jars, settings, data, [f"@{file.name}"] if secret_arguments else [])


def _format(java: str, jars: list[Path], settings: Path, data: Path, more: list[str]) -> str:
    cluster = _new_id()
    command = [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", str(jars[0].parent / "*")]
    command += ["kafka.tools.StorageTool", "format", "--ignore-formatted"]
    command += ["--cluster-id", cluster, "--config", str(settings), *more]
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_FORMAT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LocalKafkaFailed(
            f"Formatting {data} took more than {_FORMAT_SECONDS} s. Is the disk all right?"
        ) from error
    if done.returncode:
        lines = done.stdout.decode(errors="replace").splitlines()
        raise LocalKafkaFailed(f"Kafka's data folder {data} cannot be made. {told(lines)}")
    return cluster


def _new_id() -> str:
    """As Kafka writes ids; never with a dash in front, where it would be taken for an option."""
    while (new := urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return new
