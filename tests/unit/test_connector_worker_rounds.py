"""What a round into a Spark worker would look at anew."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from duolog.connector.worker_rounds import let_go_of_sparks_archives


def archive(path: Path, module: str) -> Path:
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as content:
        content.writestr(f"{module}/__init__.py", "")
        content.writestr(f"{module}/inner.py", "ANSWER = 42\n")
    return path


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Spark's own archive and somebody else's, both imported from."""
    sparks = archive(tmp_path / "spark" / "python" / "lib" / "pyspark.zip", "of_spark")
    others = archive(tmp_path / "sparkling" / "files" / "mine.zip", "of_others")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    for path, module in ((sparks, "of_spark"), (others, "of_others")):
        monkeypatch.syspath_prepend(str(path))
        monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.import_module(module)
    return sparks, others


def finders(path: Path) -> list[str]:
    return [
        known
        for known, finder in sys.path_importer_cache.items()
        if known.startswith(str(path)) and isinstance(finder, zipimport.zipimporter)
    ]


def test_only_sparks_archives_are_let_go_of(archives: tuple[Path, Path]) -> None:
    sparks, others = archives
    assert finders(sparks)
    before = finders(others)
    assert before
    let_go_of_sparks_archives()
    assert finders(sparks) == []
    assert finders(others) == before


def test_what_they_hold_can_be_imported_all_the_same(archives: tuple[Path, Path]) -> None:
    let_go_of_sparks_archives()
    assert importlib.import_module("of_spark.inner").ANSWER == 42
    assert importlib.import_module("of_others.inner").ANSWER == 42


def test_without_spark_nothing_is_touched(
    archives: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPARK_HOME")
    before = dict(sys.path_importer_cache)
    let_go_of_sparks_archives()
    assert sys.path_importer_cache == before
