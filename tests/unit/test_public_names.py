"""What Duolog shows: errors as documented, names that exist, an import that costs little."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import pytest

from duolog import errors
from duolog.errors import DuologError, InvalidFilter, OffsetOutOfRange, RegistryRefused


def all_errors(root: type[DuologError]) -> list[type[DuologError]]:
    return [root, *(found for child in root.__subclasses__() for found in all_errors(child))]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    assert errors.__doc__ is not None
    drawn: list[tuple[int, str]] = []
    for line in errors.__doc__.splitlines():
        stripped = line.lstrip(" │├└─")
        name = stripped.split(" ")[0]
        if name in errors.__all__ and line.startswith("    "):
            drawn.append((len(line) - len(stripped), name))
    assert sorted(name for _, name in drawn) == sorted(errors.__all__)
    for at, (indent, name) in enumerate(drawn[1:], 1):
        parent = next(n for i, n in reversed(drawn[:at]) if i < indent)
        assert getattr(errors, name).__base__ is getattr(errors, parent)


def test_every_error_is_public_and_has_its_name_as_code() -> None:
    for error in all_errors(DuologError):
        assert error.__name__ in errors.__all__
        assert error.code == error.__name__
        assert error.__doc__


@pytest.mark.parametrize("module", ["duolog", "duolog.log", "duolog.errors", "duolog.client"])
def test_all_public_names_exist(module: str) -> None:
    imported = importlib.import_module(module)
    for name in imported.__all__:
        assert getattr(imported, name) is not None
    with pytest.raises(AttributeError):
        imported.no_such_name  # noqa: B018


def test_errors_with_fields_travel_between_processes() -> None:
    for error in (
        InvalidFilter("no such column", text="a > b", position=4),
        OffsetOutOfRange(topic="t", partition=1, offset=9, earliest=2, latest=5),
        RegistryRefused("no", status=422, error_code=42205),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert str(again) == str(error)
        assert vars(again) == vars(error)


def test_an_error_in_a_filter_points_at_the_word() -> None:
    error = InvalidFilter("no such column 'b'", text="a > 1\nAND b > 2", position=10)
    assert str(error) == "no such column 'b'\n  AND b > 2\n      ^"


def test_importing_duolog_loads_nothing_heavy() -> None:
    heavy = (
        "{'rocksdict','pyarrow','numpy','sqlglot','pydantic','typer','rich','datafusion','httpx'}"
    )
    code = f"import sys, duolog, duolog.errors; sys.exit(str({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "set()"
