"""Which mutants of a drill `make test` tries: one; `make drills-mutants` tries them all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(cases: Iterable[Any]) -> list[Any]:
    """The first case as it is, the others with `--full` alone. A tuple is several arguments."""
    first, *others = cases
    return [
        first,
        *(
            pytest.param(*(each if type(each) is tuple else (each,)), marks=pytest.mark.full)
            for each in others
        ),
    ]
