"""The journal: one line an event, whatever is in it."""

from __future__ import annotations

import io
import json
import logging

import pytest

from duolog.bridge.journal import Journal, JournalHandler, Level
from tests.support.clock import ManualClock


def fail(error: Exception) -> None:
    raise error


def test_an_event_is_one_line_for_people() -> None:
    said = io.StringIO()
    Journal(said, clock=ManualClock(0)).note("host.started", url="http://a:1", left_out=None, n=3)
    assert said.getvalue() == ("1970-01-01T00:00:00.000Z INFO    host.started url=http://a:1 n=3\n")


def test_an_event_is_one_object_for_programs() -> None:
    said = io.StringIO()
    Journal(said, as_json=True, clock=ManualClock(1500)).warn("tokens.not_reloaded", error="a\nb")
    assert said.getvalue().count("\n") == 1
    assert json.loads(said.getvalue()) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "event": "tokens.not_reloaded",
        "error": "a\nb",
    }


@pytest.mark.parametrize(
    "nasty",
    ["a\nINFO forged", "a b", 'say "x"', "a\x1b[2J", "", "\u2028", "\u202egpj", "\x9b", "k=v"],
)
def test_nothing_that_is_said_can_forge_a_line(nasty: str) -> None:
    said = io.StringIO()
    Journal(said, clock=ManualClock(0)).note("request", path=nasty)
    line = said.getvalue()
    assert len(line.splitlines()) == 1
    assert line.endswith(f"path={json.dumps(nasty)}\n")


def test_levels_below_the_chosen_one_are_left_out() -> None:
    said = io.StringIO()
    journal = Journal(said, level=Level.WARNING)
    journal.detail("a")
    journal.note("b")
    journal.warn("c")
    assert said.getvalue().split()[2:] == ["c"]
    assert journal.shows(Level.ERROR)
    assert not journal.shows(Level.INFO)


def test_an_error_is_one_line_with_where_it_came_from() -> None:
    said = io.StringIO()
    try:
        fail(RuntimeError("two\nlines"))
    except RuntimeError as error:
        Journal(said, as_json=True).error("request.failed", error, id="7")
    told = json.loads(said.getvalue())
    assert told["error"] == "RuntimeError: two\nlines"
    assert told["id"] == "7"
    assert "test_bridge_journal.py" in told["at"]


def test_what_libraries_complain_of_comes_in_too() -> None:
    said = io.StringIO()
    handler = JournalHandler(Journal(said, as_json=True))
    logger = logging.getLogger("duolog.test.journal")
    logger.addHandler(handler)
    try:
        logger.warning("Invalid HTTP request received.")
        try:
            fail(OSError("no more files"))
        except OSError:
            logger.exception("accept failed")
    finally:
        logger.removeHandler(handler)
    first, second = map(json.loads, said.getvalue().splitlines())
    assert (first["event"], first["said"]) == (logger.name, "Invalid HTTP request received.")
    assert second["error"] == "OSError: no more files"


def test_a_journal_that_nobody_reads_stops_nothing() -> None:
    said = io.StringIO()
    said.close()
    Journal(said).note("host.stopped")
    assert said.closed
