"""Programs that run where there is nothing but pyarrow, numpy and Duolog, as Spark's tasks may."""

from __future__ import annotations

import subprocess
import sys

_ALLOWED = ("duolog", "numpy", "pyarrow")
_BLOCKED = (
    "anyio",
    "confluent_kafka",
    "datafusion",
    "fastapi",
    "fastavro",
    "httpx",
    "pandas",
    "py4j",
    "pydantic",
    "pyspark",
    "rich",
    "rocksdict",
    "sqlglot",
    "typer",
)
_BLOCKING = """
import sys

ALLOWED = {allowed} | set(sys.stdlib_module_names)


class OnlyTheFew:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in ALLOWED and not top.startswith(("__editable__", "_sysconfigdata")):
            raise ModuleNotFoundError(f"{{name}} is not there in this environment", name=name)


sys.meta_path.insert(0, OnlyTheFew())
for name in {blocked}:
    assert name not in sys.modules
    try:
        __import__(name)
    except ModuleNotFoundError:
        continue
    raise AssertionError(f"{{name}} can be imported, so this shows nothing")
"""


def run_isolated(program: str, *arguments: object, also: tuple[str, ...] = ()) -> str:
    """What a program says in an interpreter that finds only the few libraries, and `also` these."""
    allowed = {*_ALLOWED, *also}
    blocked = [name for name in _BLOCKED if name not in allowed]
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            _BLOCKING.format(allowed=allowed, blocked=blocked) + program,
            *map(str, arguments),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
