"""How long a client may leave a request unfinished, and how many clients there may be."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from duolog.bridge.serve.connections import ConnectionRules, Progress, missing
from duolog.bridge.serve.hanging_up import STOPPING, hang_up
from duolog.errors import InvalidSetting
from duolog.settings import load_settings

RULES = ConnectionRules(headers_within_seconds=10, body_silence_seconds=30)


@pytest.mark.parametrize(
    ("progress", "now", "answering", "resting", "more_body", "expected"),
    [
        (Progress(0, 0), 9.9, False, False, False, None),
        (Progress(0, 0), 10, False, False, False, "headers"),
        (Progress(0, 9), 10, False, False, False, "headers"),  # a byte now and then
        (Progress(0, 9), 1000, False, True, False, None),  # between two requests
        (Progress(995, 1000), 1000, False, False, False, None),  # its next request
        (Progress(0, 0), 1000, True, False, False, None),  # a long poll
        (Progress(0, 0), 29.9, True, False, True, None),
        (Progress(0, 0), 30, True, False, True, "body"),
        (Progress(0, 29), 58, True, False, True, None),  # slow, but it comes
        (Progress(0, 0, untaken_bytes=1, taken_at=70), 99.9, True, False, False, None),
        (Progress(0, 0, untaken_bytes=1, taken_at=70), 100, True, False, False, "taking"),
        (Progress(0, 0, untaken_bytes=1, taken_at=70), 100, False, True, False, "taking"),
        (Progress(0, 0, untaken_bytes=0, taken_at=70), 100, True, False, False, None),
    ],
)
def test_what_should_have_come(
    progress: Progress,
    now: float,
    answering: bool,
    resting: bool,
    more_body: bool,
    expected: str | None,
) -> None:
    found = missing(
        progress,
        RULES,
        now,
        is_answering=answering,
        is_resting=resting,
        has_more_body=more_body,
    )
    assert found == expected


def test_a_client_takes_its_answer_while_less_of_it_is_left_or_none() -> None:
    progress = Progress(0, 0)
    for now, size, taken_at in (
        (1, 0, 1),
        (2, 100, 2),
        (3, 100, 2),
        (4, 90, 4),
        (5, 90, 4),
        (6, 0, 6),
    ):
        progress.look_at_untaken(size, now)
        assert progress.taken_at == taken_at


def test_a_delay_of_the_host_itself_is_not_the_clients() -> None:
    progress = Progress(0, 0)
    progress.forgive(5)
    for now, expected in ((14.9, None), (15, "headers")):
        found = missing(
            progress, RULES, now, is_answering=False, is_resting=False, has_more_body=False
        )
        assert found == expected


@pytest.mark.parametrize(
    ("files", "most"), [(1024, 768), (1 << 20, 10_000), (-1, 10_000), (2, 1), (0, 1)]
)
def test_some_files_are_left_for_the_log(files: int, most: int) -> None:
    assert RULES.within(files).max_connections == most


def test_settings_say_what_the_rules_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "duolog.toml").write_text(
        "[serve]\nmax_connections = 7\nheaders_within_seconds = 3\nbody_silence_seconds = 4\n"
    )
    assert load_settings().host_options().connection_rules == ConnectionRules(7, 3.0, 4.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_connections": 0},
        {"headers_within_seconds": 0.0},
        {"headers_within_seconds": float("nan")},
        {"body_silence_seconds": float("inf")},
    ],
)
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(wrong))):
        ConnectionRules(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("response_started", "pipeline", "is_told"),
    [(False, [], True), (True, [], False), (False, ["the next one"], False)],
)
def test_nothing_is_written_into_an_answer_that_has_begun(
    response_started: bool, pipeline: list[str], is_told: bool
) -> None:
    transport = Mock()
    transport.is_closing.return_value = False
    cycle = SimpleNamespace(response_started=response_started, response_complete=False)
    hang_up(
        SimpleNamespace(
            transport=transport,
            cycle=cycle,
            pipeline=pipeline,  # of uvicorn's: while it is not empty, the one before is answered
            progress=Progress(0, 0, has_spoken=True),
        ),
        STOPPING,
    )
    assert transport.write.called == is_told
    assert transport.abort.called != is_told
