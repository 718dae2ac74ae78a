"""What lies in the chart's folder and in `golden/`, read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "duolog"
HERE = Path(__file__).parent
VALUES = sorted((HERE / "values").glob("*.yaml"))
_ROW = re.compile(r"^\| `([\w.]+)` \| `(.*?)` \|", re.MULTILINE)


def golden(values: Path) -> Path:
    """What the chart gives for a set of values."""
    return HERE / "golden" / values.name


def objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of manifests."""
    return [each for each in yaml.safe_load_all(path.read_text()) if each]


def default_values() -> dict[str, Any]:
    """By dotted names: each value that the chart has, with its default."""
    return dict(_leaves(yaml.safe_load((CHART / "values.yaml").read_text())))


def schema_names() -> set[str]:
    """By dotted names: each value that the schema describes one by one."""
    return set(_described(json.loads((CHART / "values.schema.json").read_text())))


def documented_values() -> dict[str, Any]:
    """By dotted names: each value of the table in the README, with the default that it says."""
    text = (CHART / "README.md").read_text().partition("## Values")[2]
    return {name: yaml.safe_load(default) for name, default in _ROW.findall(text)}


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _described(schema: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name, inner in schema["properties"].items():
        if "properties" in inner:
            yield from _described(inner, f"{prefix}{name}.")
        else:
            yield prefix + name
