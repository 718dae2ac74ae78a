"""The token file and who it lets in."""

from __future__ import annotations

import fcntl
import hmac
import io
import json
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from duolog.bridge.http import tokens
from duolog.bridge.http.callers import ANYBODY, THIS_MACHINE, Caller, Role
from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.http.tokens import (
    add_token,
    caller_of,
    hash_of,
    read_tokens,
    revoke_token,
    rotate_token,
)
from duolog.bridge.journal import Journal
from duolog.bridge.local_callers import LocalCallers
from duolog.bridge.metrics.names import TOKEN_RELOAD_FAILURES, TOKENS
from duolog.bridge.metrics.tally import Tally
from duolog.errors import InvalidSetting, NameTaken
from duolog.reach.protocol import local_token, new_nonce
from tests.support.clock import ManualClock

BILLING = Caller("billing", Role.SERVICE, ("orders", "invoices.*"))
NOW = 1_700_000_000
LINE = {"name": "a", "role": "user", "sha256": hash_of("t")}


def doorkeeper(path: Path | None) -> tuple[Doorkeeper, Tally, io.StringIO]:
    tally, said = Tally(), io.StringIO()
    return Doorkeeper(path, tally, Journal(said)), tally, said


def counted(tally: Tally) -> float:
    """The tokens that /metrics tells of."""
    return tally.asked()[TOKENS][0][1]


def test_a_token_that_was_made_is_known_with_its_role_and_topics(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    first = add_token(path, BILLING)
    second = add_token(path, Caller("ops", Role.DBA))
    known = read_tokens(path)
    assert caller_of(first, known, NOW) == BILLING
    assert caller_of(second, known, NOW) == Caller("ops", Role.DBA)
    assert first != second
    for wrong in ("", first[:-1], first + "x", hash_of(first), "ü\udcff"):
        assert caller_of(wrong, known, NOW) is None


def test_the_file_holds_hashes_only_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = add_token(path, BILLING)
    written = path.read_text()
    assert token not in written
    assert token.removeprefix("duolog_") not in written
    assert hash_of(token) in written
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["tokens"]


def test_a_token_cannot_be_guessed() -> None:
    made = {tokens.make_token() for _ in range(100)}
    assert len(made) == 100
    assert all(len(each) > 43 for each in made)


def test_every_known_token_is_compared_whichever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokens"
    first = add_token(path, Caller("a", Role.USER))
    add_token(path, Caller("b", Role.USER))
    compared: list[str] = []

    def compare(one: str, other: str) -> bool:
        compared.append(other)
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    assert caller_of(first, read_tokens(path), NOW) is not None
    assert len(compared) == 2


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    add_token(path, BILLING)
    before = path.read_text()
    with pytest.raises(NameTaken, match="already has a token named 'billing'"):
        add_token(path, Caller("billing", Role.USER))
    assert path.read_text() == before


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "x" * 101, "é"])
def test_names_that_would_mislead_in_a_log_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSetting, match="cannot name a token"):
        add_token(tmp_path / "tokens", Caller(name, Role.USER))
    assert not (tmp_path / "tokens").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("hunter2-hunter2", "It holds hashes, not tokens"),
        ("[]", "not as `duolog token create` writes it"),
        ("[" * 100_000, "not as `duolog token create` writes it"),
        (json.dumps({**LINE, "token": "hunter2-hunter2"}), "not as"),
        (json.dumps({**LINE, "name": 1}), "has no name"),
        (json.dumps({**LINE, "name": "a b"}), "has no name"),
        (json.dumps({**LINE, "role": "root"}), r"\('a'\) has no role"),
        (json.dumps({**LINE, "role": ["user"]}), r"\('a'\) has no role"),
        (json.dumps({**LINE, "sha256": "abc"}), "no sha256"),
        (json.dumps({**LINE, "sha256": "A" * 64}), "no sha256"),
        (json.dumps({**LINE, "topics": []}), "list of patterns"),
        (json.dumps({**LINE, "topics": "orders"}), "list of patterns"),
        (json.dumps({**LINE, "topics": [1]}), "list of patterns"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_not_repeated(
    tmp_path: Path, line: str, said: str
) -> None:
    path = tmp_path / "tokens"
    path.write_text("\n" + line + "\n")
    with pytest.raises(InvalidSetting, match=said) as caught:
        read_tokens(path)
    assert str(caught.value).startswith(f"Line 2 of the token file {path}")
    assert "hunter2" not in str(caught.value)


def test_two_tokens_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{json.dumps(LINE)}\n{json.dumps(LINE)}\n")
    with pytest.raises(InvalidSetting, match="two tokens named 'a'"):
        read_tokens(path)


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="duolog token create --role service"):
        read_tokens(tmp_path / "tokens")


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidSetting, match="cannot be read: Is a directory"):
        read_tokens(tmp_path / "folder")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSetting, match="it is not UTF-8"):
        read_tokens(tmp_path / "binary")
    with pytest.raises(InvalidSetting, match="cannot be written: No such file"):
        add_token(tmp_path / "none" / "tokens", BILLING)


def test_without_a_file_everybody_may_do_everything() -> None:
    keeper, _, _ = doorkeeper(None)
    assert not keeper.wants_tokens
    assert keeper.caller(None) == keeper.caller("anything") == ANYBODY


def test_a_token_counts_from_when_it_is_made_until_its_line_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    first = add_token(path, BILLING)
    keeper, tally, said = doorkeeper(path)
    assert counted(tally) == 1
    later = add_token(path, Caller("later", Role.USER))
    assert keeper.caller(later) == Caller("later", Role.USER)
    assert counted(tally) == 2
    path.write_text(path.read_text().splitlines()[1] + "\n")
    assert keeper.caller(first) is None
    assert keeper.caller(later) is not None
    assert later not in said.getvalue()
    assert said.getvalue().count("tokens.reloaded") == 2


@pytest.mark.parametrize("broken", [b"nonsense\n", b"\xff", None])
def test_a_file_that_broke_leaves_the_tokens_before_in_force_and_says_so_once(
    tmp_path: Path, broken: bytes | None
) -> None:
    path = tmp_path / "tokens"
    token = add_token(path, BILLING)
    keeper, tally, said = doorkeeper(path)
    whole = path.read_bytes()
    if broken is None:
        path.unlink()
    else:
        path.write_bytes(broken)
    assert [keeper.caller(token) for _ in range(3)] == [BILLING] * 3
    assert tally.number(TOKEN_RELOAD_FAILURES) == 1
    assert said.getvalue().count("tokens.not_reloaded") == 1
    path.write_bytes(whole)
    os.utime(path, ns=(1, 1))
    assert keeper.caller(token) == BILLING
    assert "tokens.reloaded" in said.getvalue()


def test_a_token_ends_by_itself(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens", ManualClock(NOW * 1000)
    token = add_token(path, BILLING, NOW + 60)
    keeper = Doorkeeper(path, Tally(), Journal(io.StringIO()), clock)
    clock.advance(seconds=59)
    assert keeper.caller(token) == BILLING
    clock.advance(seconds=1)
    assert keeper.caller(token) is None


def test_the_metric_counts_the_tokens_in_force(tmp_path: Path) -> None:
    """Also where one ends while the file stays as it is."""
    path, clock, tally = tmp_path / "tokens", ManualClock(NOW * 1000), Tally()
    add_token(path, BILLING, NOW + 60)
    add_token(path, Caller("ops", Role.DBA))
    rotate_token(path, "ops", NOW, overlap_seconds=10)
    Doorkeeper(path, tally, Journal(io.StringIO()), clock)
    assert counted(tally) == 2
    clock.advance(seconds=60)
    assert counted(tally) == 1
    add_token(path, Caller("later", Role.USER))
    assert counted(tally) == 2


def test_a_token_that_is_replaced_counts_as_long_as_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    limited = Caller("billing", Role.DBA, ("orders",), ("billing-*",), ("shop.*",))
    other, first = add_token(path, Caller("other", Role.USER)), add_token(path, limited)
    second = rotate_token(path, "billing", NOW, overlap_seconds=60)

    def count(now: float) -> list[bool]:
        known = read_tokens(path)
        assert caller_of(other, known, now) == Caller("other", Role.USER)
        return [caller_of(each, known, now) == limited for each in (first, second)]

    assert [count(NOW), count(NOW + 59), count(NOW + 60)] == [[True, True]] * 2 + [[False, True]]
    third = rotate_token(path, "billing", NOW, expires_at=NOW + 10)
    assert count(NOW) == [False, False]
    assert caller_of(third, read_tokens(path), NOW + 9) == limited
    with pytest.raises(InvalidSetting, match="--expires-seconds"):
        rotate_token(path, "billing", NOW + 10)
    fourth = rotate_token(path, "billing", NOW + 5, overlap_seconds=1000)
    for token in (third, fourth):
        assert caller_of(token, read_tokens(path), NOW + 10) is None


def test_a_token_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    first, second = add_token(path, BILLING), add_token(path, Caller("ops", Role.DBA))
    keeper, _, _ = doorkeeper(path)
    revoke_token(path, "billing")
    assert keeper.caller(first) is None
    assert keeper.caller(second) == Caller("ops", Role.DBA)
    for change in (revoke_token, partial(rotate_token, now=NOW)):
        with pytest.raises(InvalidSetting, match=r"no token named 'billing'\. It has: ops"):
            change(path, "billing")


def test_a_token_that_is_replaced_never_outlives_its_own_end(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    ended, ending = (
        add_token(path, BILLING, NOW - 1),
        add_token(path, Caller("e", Role.USER), NOW + 9),
    )
    rotate_token(path, "billing", NOW, overlap_seconds=3600, expires_at=NOW + 9999)
    rotate_token(path, "e", NOW, overlap_seconds=3600, expires_at=NOW + 9999)
    known = read_tokens(path)
    assert caller_of(ended, known, NOW) is None
    assert caller_of(ending, known, NOW + 8) is not None
    assert caller_of(ending, known, NOW + 9) is None


def test_what_is_changed_through_a_link_is_the_file_itself(tmp_path: Path) -> None:
    path, link = tmp_path / "real" / "tokens", tmp_path / "link"
    path.parent.mkdir()
    token = add_token(path, BILLING)
    path.chmod(0o640)
    link.symlink_to(path)
    keeper, _, _ = doorkeeper(path)
    revoke_token(link, "billing")
    assert link.is_symlink()
    assert keeper.caller(token) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_no_file_of_tokens_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidSetting, match="no regular file"):
        add_token(tmp_path / "pipe", BILLING)
    for change in (revoke_token, partial(rotate_token, now=NOW)):
        with pytest.raises(InvalidSetting, match="There is no token file"):
            change(tmp_path / "none", "billing")
    with pytest.raises(InvalidSetting, match="cannot be written"):
        add_token(tmp_path / ("x" * 300), BILLING)
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_file_that_somebody_holds_is_told_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokens"
    add_token(path, BILLING)
    monkeypatch.setattr(tokens, "_PATIENCE_SECONDS", 0.1)
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        with pytest.raises(InvalidSetting, match="changed by somebody else"):
            revoke_token(path, "billing")


def test_many_who_change_the_file_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    with ThreadPoolExecutor(8) as pool:
        names = [f"n{number}" for number in range(40)]
        list(pool.map(lambda name: add_token(path, Caller(name, Role.USER)), names))
    assert {each.caller.name for each in read_tokens(path)} == set(names)


@pytest.mark.parametrize(
    "wrong",
    [{"groups": []}, {"tables": "orders"}, {"groups": [1]}, {"expires": "never"},
     {"expires": -1}, {"expires": True}, {"former": "short"}, {"former_until": 1.5}],
)  # fmt: skip
def test_lines_whose_limits_cannot_be_read_are_refused(
    tmp_path: Path, wrong: dict[str, object]
) -> None:
    path = tmp_path / "tokens"
    path.write_text(json.dumps({**LINE, **wrong}))
    with pytest.raises(InvalidSetting, match=r"Line 1 of .* \('a'\)"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("topics", "tables", "routed", "refused"),
    [
        (None, None, ["hr.pay", "shop.orders"], []),
        (("orders",), None, [], ["hr.pay", "shop.orders"]),
        (("orders",), ("shop.*",), ["shop.orders"], ["hr.pay"]),
        (None, ("shop.*",), ["shop.orders"], ["hr.pay"]),
    ],
)
def test_a_table_is_routed_by_who_may(
    topics: tuple[str, ...] | None,
    tables: tuple[str, ...] | None,
    routed: list[str],
    refused: list[str],
) -> None:
    caller = Caller("c", Role.DBA, topics, None, tables)
    assert [caller.may_route(each) for each in (*routed, *refused)] == (
        [True] * len(routed) + [False] * len(refused)
    )


def test_an_emptied_file_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    token = add_token(path, BILLING)
    keeper, _, _ = doorkeeper(path)
    path.write_text("")
    assert keeper.caller(token) is None
    assert keeper.wants_tokens


def test_who_knows_the_secret_of_the_logs_folder_is_let_in_too(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    add_token(path, BILLING)
    keeper, _, _ = doorkeeper(path)
    local = LocalCallers("a log", "ab" * 32)
    token = local_token(local.secret, new_nonce(), local.nonce, local.log_id)
    assert keeper.caller(token) is None
    keeper.trust(local)
    assert keeper.caller(token) == THIS_MACHINE
    assert keeper.caller(local.secret) is None


def test_a_local_token_is_of_one_secret_one_run_and_one_log() -> None:
    local = LocalCallers("a log", "ab" * 32)
    nonce = new_nonce()
    token = local_token(local.secret, nonce, local.nonce, local.log_id)
    assert local.knows(token)
    assert local.secret not in token
    for other in (
        local_token("cd" * 32, nonce, local.nonce, local.log_id),
        local_token(local.secret, nonce, new_nonce(), local.log_id),
        local_token(local.secret, nonce, local.nonce, "another"),
        token.replace(nonce, new_nonce()),
        token[:-1],
        token + "0",
        token.partition(".")[2],
        local.proof(nonce, "http://127.0.0.1:1"),
        local.secret,
        "duolog-local.é.",
        "",
    ):
        assert not local.knows(other)
