"""docs/guide/operations.md names what there is: every stop, and metrics that exist."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from duolog import errors
from duolog.bridge.metrics.names import METRICS

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "operations.md").read_text()
ALERTS = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def test_every_stop_of_a_mirror_has_its_way_out() -> None:
    stops = {
        kind.__name__
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.MirrorHalted)
    } - {"MirrorHalted"}
    rows = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))
    assert stops <= rows


def test_every_error_that_is_named_is_one() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", GUIDE))
    assert {name for name in named if not hasattr(errors, name)} == set()


def test_alerts_are_rules_over_metrics_that_exist() -> None:
    (text,) = ALERTS
    rules: list[dict[str, Any]] = import_module("yaml").safe_load(text)["groups"][0]["rules"]
    known = {metric.full_name: metric for metric in METRICS}
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        for name, labels in re.findall(r"(duolog_\w+)(\{[^}]*\})?", rule["expr"]):
            assert name in known, name
            for label in re.findall(r"(\w+)=", labels):
                assert label in known[name].labels


@pytest.mark.parametrize("flag", sorted(set(re.findall(r"`(--[a-z-]+)", GUIDE))))
def test_every_option_that_is_named_is_one(flag: str) -> None:
    program = Path(errors.__file__).parent / "cli"
    spoken = flag.removeprefix("--").replace("-", "_")
    texts = [file.read_text() for file in program.rglob("*.py")]
    of_typer = {"--install-completion", "--show-completion"}
    assert flag in of_typer or any(flag in text or f"{spoken}:" in text for text in texts)
