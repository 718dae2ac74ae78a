from __future__ import annotations

import json
import os
import re
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import pytest

from duolog.errors import InvalidSetting
from duolog.log.options import LogOptions
from duolog.settings import MirrorSettings, Settings, load_settings


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without settings, in an environment without any."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.upper().startswith("DUOLOG_")]:
        monkeypatch.delenv(name)
    return tmp_path


def test_without_any_settings_a_log_is_opened_with_its_own_defaults() -> None:
    settings = load_settings()
    assert settings.log is None
    options, defaults = settings.log_options(), LogOptions()
    assert options.max_record_bytes == defaults.max_record_bytes
    assert options.max_fetch_records == defaults.max_fetch_records
    assert options.cache_bytes == defaults.cache_bytes
    assert options.min_free_bytes == defaults.min_free_bytes
    assert options.lock_wait_seconds == defaults.lock_wait_seconds
    assert options.max_timestamp_ahead_seconds == defaults.max_timestamp_ahead_seconds == 3600


def test_every_setting_but_the_directory_is_an_option_of_the_log() -> None:
    tables = {"avro", "kafka", "mirror", "registry", "serve", "topics", "sql", "members", "metrics"}
    others = {"log", "url", "token", *tables}
    assert set(Settings.model_fields) - others == set(LogOptions.__dataclass_fields__) - {
        "clock",
        "fault",
    }


def test_flags_win_over_the_environment_and_that_over_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "duolog.toml").write_text('log = "in-file"\n')
    assert load_settings().log == "in-file"
    monkeypatch.setenv("DUOLOG_LOG", "in-environment")
    assert load_settings().log == "in-environment"
    assert load_settings({"log": "in-flag"}).log == "in-flag"


def test_each_setting_is_looked_up_by_itself(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "duolog.toml").write_text('log = "in-file"\ncache_bytes = 5\n')
    monkeypatch.setenv("DUOLOG_LOCK_WAIT_SECONDS", "0.5")
    settings = load_settings({"log": "in-flag"})
    assert (settings.log, settings.cache_bytes, settings.lock_wait_seconds) == ("in-flag", 5, 0.5)


def test_a_setting_of_a_table_comes_from_the_environment_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "duolog.toml").write_text('[serve]\nlisten = "127.0.0.1:1"\nmax_connections = 7\n')
    monkeypatch.setenv("DUOLOG_SERVE__LISTEN", "127.0.0.1:2")
    monkeypatch.setenv("DUOLOG_TOPICS__MAX_CONSUME_TIMEOUT", "60")
    settings = load_settings()
    assert (settings.serve.listen, settings.serve.max_connections) == ("127.0.0.1:2", 7)
    assert settings.topics.max_consume_timeout == 60
    monkeypatch.setenv("DUOLOG_SERVE__LISTENS", "127.0.0.1:2")
    with pytest.raises(
        InvalidSetting, match=r"DUOLOG_SERVE__LISTENS names no setting.*DUOLOG_SERVE__LISTEN;"
    ) as unknown:
        load_settings()
    assert "duolog.toml" not in str(unknown.value)
    monkeypatch.delenv("DUOLOG_SERVE__LISTENS")
    monkeypatch.setenv("DUOLOG_SERVE", '{"listn": "127.0.0.1:2"}')
    with pytest.raises(InvalidSetting, match=r"DUOLOG_SERVE has an unknown key 'listn'.*'listen'"):
        load_settings()


def test_how_far_ahead_times_may_be_is_a_setting(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "duolog.toml").write_text("max_timestamp_ahead_seconds = 60\n")
    assert load_settings().log_options().max_timestamp_ahead_seconds == 60
    monkeypatch.setenv("DUOLOG_MAX_TIMESTAMP_AHEAD_SECONDS", "86400")
    assert load_settings().log_options().max_timestamp_ahead_seconds == 86_400


def test_a_flag_that_was_not_given_leaves_the_environment_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DUOLOG_LOG", "in-environment")
    assert load_settings({"log": None}).log == "in-environment"


def test_an_empty_variable_is_no_setting(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "duolog.toml").write_text('log = "in-file"\n')
    monkeypatch.setenv("DUOLOG_LOG", "")
    assert load_settings().log == "in-file"


@pytest.mark.parametrize("written", ['"2 MiB"', "2097152", '"2097152"'])
def test_sizes_are_numbers_or_words(folder: Path, written: str) -> None:
    (folder / "duolog.toml").write_text(f"max_record_bytes = {written}\n")
    assert load_settings().log_options().max_record_bytes == 2 << 20


def test_an_unknown_key_in_the_file_is_named_with_the_nearest_known_one(folder: Path) -> None:
    (folder / "duolog.toml").write_text("cache_byte = 3\n")
    with pytest.raises(InvalidSetting, match=r"unknown key 'cache_byte'.*'cache_bytes'"):
        load_settings()


def test_another_tools_variable_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUOLOG_TEST_KAFKA", "localhost:9092")
    assert load_settings().log is None


def test_a_file_that_is_no_toml_is_a_named_error(folder: Path) -> None:
    (folder / "duolog.toml").write_text("log = \n")
    with pytest.raises(InvalidSetting, match=r"duolog\.toml is not valid TOML: .*line 1"):
        load_settings()


def test_a_file_that_is_no_text_is_a_named_error(folder: Path) -> None:
    (folder / "duolog.toml").write_bytes(b"log = '\xff'\n")
    with pytest.raises(InvalidSetting, match=r"duolog\.toml is not valid TOML"):
        load_settings()


def test_a_file_that_cannot_be_read_is_a_named_error(folder: Path) -> None:
    (folder / "duolog.toml").mkdir()
    with pytest.raises(InvalidSetting, match=r"duolog\.toml cannot be read"):
        load_settings()


def test_a_wrong_value_is_named_with_where_it_stands(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "duolog.toml").write_text('cache_bytes = "much"\n')
    with pytest.raises(InvalidSetting, match=r"'cache_bytes' in duolog\.toml cannot be 'much'"):
        load_settings()
    monkeypatch.setenv("DUOLOG_CACHE_BYTES", "more")
    with pytest.raises(InvalidSetting, match="DUOLOG_CACHE_BYTES cannot be 'more'"):
        load_settings()
    monkeypatch.setenv("duolog_serve__max_connections", "many")
    with pytest.raises(InvalidSetting, match=r"^duolog_serve__max_connections cannot be 'many'"):
        load_settings({"cache_bytes": 5})
    monkeypatch.delenv("duolog_serve__max_connections")
    with pytest.raises(InvalidSetting, match="--cache-bytes cannot be 'most'"):
        load_settings({"cache_bytes": "most"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_RECORD_BYTES", "0"),
        ("MAX_FETCH_RECORDS", "0"),
        ("LOCK_WAIT_SECONDS", "-1"),
        ("LOCK_WAIT_SECONDS", "nan"),
        ("LOCK_WAIT_SECONDS", "inf"),
        ("MAX_TIMESTAMP_AHEAD_SECONDS", "-1"),
        ("MAX_TIMESTAMP_AHEAD_SECONDS", "nan"),
    ],
)
def test_numbers_that_no_log_runs_with_are_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"DUOLOG_{name}", value)
    with pytest.raises(InvalidSetting, match=f"(?i){name}"):
        load_settings()


def test_an_interval_between_polls_is_taken_and_goes_nowhere(folder: Path) -> None:
    (folder / "duolog.toml").write_text("[topics]\npoll_interval_ms = 50\n")
    settings = load_settings()
    assert settings.topics.poll_interval_ms == 50
    (folder / "duolog.toml").unlink()
    assert settings.host_options() == load_settings().host_options()


GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def printed_settings() -> dict[str, Any]:
    """The settings file that the guide prints."""
    after = (GUIDE / "http.md").read_text().partition("\n## Settings\n")[2]
    block = re.search(r"(?:^    .*\n|^\n)+", after[after.index("\n    [") :], re.MULTILINE)
    assert block is not None
    return tomllib.loads(textwrap.dedent(block[0]))


def test_the_guide_prints_every_setting_of_a_host_with_its_default(folder: Path) -> None:
    printed = printed_settings()
    defaults = Settings()
    (folder / "duolog.toml").write_text(_as_toml(printed))
    loaded = load_settings()
    for table in ("serve", "registry", "topics", "sql", "members", "metrics"):
        known = getattr(defaults, table)
        fields = set(type(known).model_fields) - {"poll_interval_ms"}  # taken, and without effect
        assert set(printed[table]) == fields, table
        for name in fields:
            default = getattr(known, name)
            assert default is None or getattr(getattr(loaded, table), name) == default, name


def test_the_guide_names_every_setting_of_the_mirror_and_of_the_log() -> None:
    guide = "".join(page.read_text() for page in GUIDE.glob("*.md"))
    tables = {"serve", "registry", "topics", "sql", "members", "metrics", "mirror", "avro", "kafka"}
    named = {*MirrorSettings.model_fields, *set(Settings.model_fields) - tables}
    missing = {name for name in named if not re.search(rf"\b{name}\b", guide)}
    assert not missing


def _as_toml(tables: dict[str, Any]) -> str:
    return "".join(
        f"[{table}]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in found.items())
        for table, found in tables.items()
    )


@pytest.mark.parametrize("text", ["max_group_partitions = -1", "groups_always = '('"])
def test_what_metrics_cannot_show_is_refused_before_a_host_starts(folder: Path, text: str) -> None:
    (folder / "duolog.toml").write_text(f"[metrics]\n{text}\n")
    with pytest.raises(InvalidSetting, match=text.split(" ", maxsplit=1)[0]):
        load_settings().host_options()
