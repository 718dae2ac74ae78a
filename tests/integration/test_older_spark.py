"""The functions `write_batch` and `write_stream` keep their whole contract on PySpark 3.5."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.older_spark import VERSION, older_spark_python

ROOT = Path(__file__).parents[2]
_SECONDS = 1200


@pytest.mark.timeout(_SECONDS + 900)
def test_the_functions_keep_their_contract_on_the_oldest_spark(tmp_path: Path) -> None:
    python = older_spark_python()
    arguments = ["tests/integration/test_spark_sink.py", "-k", "foreachBatch"]
    # PySpark 3.5 compares versions in a way that newer Pythons warn of.
    arguments += ["-W", "ignore:distutils Version classes:DeprecationWarning"]
    arguments += ["-p", "no:cacheprovider", "--basetemp", str(tmp_path / "spark")]
    ran = subprocess.run(
        [str(python), "-m", "pytest", *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "SPARK_HOME"},
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert re.search(r"\b[2-9]\d passed", ran.stdout), ran.stdout[-500:]
    assert f"pyspark {VERSION}" in ran.stdout
