"""Images, compose file, board and alerts: what can be seen without an engine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from duolog.bridge.metrics.names import METRICS, Kind
from duolog.settings import Settings

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
_SAMPLES = {"histogram": ("_bucket", "_count", "_sum")}
_STEP = re.compile(r"^(FROM|COPY|RUN|USER|HEALTHCHECK|ENTRYPOINT|CMD|ADD|ARG)\s(.*)", re.MULTILINE)
_TOTALS = {"duolog_mirror_skipped_total", "duolog_mirror_foreign_total"}  # as they are: how many
_LABELS_OF_SCRAPES = {"instance", "job", "le"}


def stages() -> dict[str, list[tuple[str, str]]]:
    """By name, what each stage of the Dockerfile does."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    found: dict[str, list[tuple[str, str]]] = {}
    for word, rest in _STEP.findall(re.sub(r"\\\n\s*", "", text)):
        if word == "FROM":
            found[rest.split(" AS ")[1]] = []
        elif found:
            found[list(found)[-1]].append((word, rest))
    return found


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def test_the_default_image_is_the_bridge_and_no_image_runs_as_root() -> None:
    found = stages()
    assert list(found)[-1] == "bridge"
    for image in ("bridge", "spark"):
        steps = dict(found[image])
        assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", steps["USER"])
        assert steps["HEALTHCHECK"]
        for word in ("ENTRYPOINT", "CMD"):  # without a shell between signals and the program
            assert isinstance(json.loads(steps[word]), list)
        assert not [rest for word, rest in found[image] if word == "RUN" and "pip" in rest]
    assert not [1 for steps in found.values() for word, _ in steps if word == "ADD"]


def test_libraries_in_images_are_pinned_by_their_content() -> None:
    installs = [
        rest
        for steps in stages().values()
        for word, rest in steps
        if word == "RUN" and "pip install" in rest
    ]
    assert len(installs) == 5
    for each in installs:
        assert "--require-hashes" in each or "--no-deps /wheels/" in each


def test_the_wheel_is_made_of_all_parts() -> None:
    copied = {rest.split()[0] for word, rest in stages()["wheel"] if word == "COPY"}
    parts = set(PROJECT["tool"]["setuptools"]["package-dir"].values())
    assert parts <= copied
    for name in PROJECT["tool"]["setuptools"]["py-modules"]:
        assert f"{name}.py" in (ROOT / "Dockerfile").read_text()


def test_what_is_copied_is_there_and_is_sent_to_the_engine() -> None:
    sent = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    }
    for steps in stages().values():
        for word, rest in steps:
            if word == "COPY" and not rest.startswith("--from"):
                *sources, _ = [each for each in rest.split() if not each.startswith("--")]
                for source in sources:
                    assert (ROOT / source).exists(), source
                    assert any(Path(source).match(pattern) for pattern in sent), source


@pytest.mark.parametrize(("image", "extras"), [("bridge", "bridge kafka"), ("spark", "spark")])
def test_the_lock_files_of_images_say_what_the_project_asks_for(image: str, extras: str) -> None:
    lock = (DOCKER / f"requirements-{image}.txt").read_text()
    tested = dict(pins((ROOT / "requirements-dev.txt").read_text()))
    locked = dict(pins(lock))
    for name, pinned in locked.items():
        if name in tested and ";" not in tested[name]:
            assert pinned == tested[name], f"{name}: make lock"
    for requirement in asked_for(extras.split()):
        if requirement.name != "duolog" and not requirement.marker:
            assert requirement.specifier.contains(locked[requirement.name], prereleases=True)


def pins(lock: str) -> Iterator[tuple[str, str]]:
    yield from re.findall(r"^([\w.-]+)==(\S+(?: ;.*?)?) \\$", lock, re.MULTILINE)


def asked_for(extras: list[str]) -> Iterator[Requirement]:
    project = PROJECT["project"]
    yield from map(Requirement, project["dependencies"])
    for extra in extras:
        for requirement in map(Requirement, project["optional-dependencies"][extra]):
            yield requirement
            if requirement.name == "duolog":
                yield from asked_for(sorted(requirement.extras))


def test_the_compose_file_is_as_its_specification_says() -> None:
    done = subprocess.run(
        [
            Path(sys.executable).with_name("check-jsonschema"),
            "--builtin-schema",
            "vendor.compose-spec",
            ROOT / "docker-compose.yml",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_each_service_is_careful() -> None:
    found = compose()
    for name, service in found["services"].items():
        assert not service["user"].startswith(("0", "root")), name
        assert service["cap_drop"] == ["ALL"]
        assert service["healthcheck"]["test"][0] == "CMD"
        assert "build" in service or re.search(r":v?\d+\.\d+\.\d+$", service["image"]), name
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} is open to the network"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source in found["volumes"] or (ROOT / source).exists(), volume
        for other in service.get("depends_on", {}).values():
            assert other == {"condition": "service_healthy"}


def test_the_variables_of_an_image_are_not_settings() -> None:
    script = (DOCKER / "entry.sh").read_text()
    ours = set(re.findall(r"\bDUOLOG_(\w+)", script)) - {"LOG"}
    assert len(ours) == 5
    assert not ours & {name.upper() for name in Settings.model_fields}


def test_only_its_reader_mounts_a_token() -> None:
    found = compose()["services"]
    for name in ("prometheus", "spark"):
        readers = [
            service
            for service, told in found.items()
            if any(each.startswith(f"{name}-token:") for each in told["volumes"])
        ]
        assert sorted(readers) == sorted(["bridge", name])


def expressions() -> list[tuple[str, str]]:
    """What board and alerts ask Prometheus, each with where it is asked."""
    alerts = yaml.safe_load((DOCKER / "prometheus" / "alerts.yml").read_text())
    found = [(r["alert"], r["expr"]) for group in alerts["groups"] for r in group["rules"]]
    board = json.loads((DOCKER / "grafana" / "boards" / "duolog.json").read_text())
    for panel in board["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel.get("targets", [])]
    found += [(each["name"], each["definition"]) for each in board["templating"]["list"]]
    return found


@pytest.mark.parametrize(("where", "expression"), expressions())
def test_board_and_alerts_ask_for_metrics_that_there_are(where: str, expression: str) -> None:
    known: Mapping[str, Any] = {
        name: metric
        for metric in METRICS
        for name in (
            [f"{metric.full_name}{end}" for end in _SAMPLES["histogram"]]
            if metric.kind is Kind.HISTOGRAM
            else [metric.full_name]
        )
    }
    asked = re.findall(r"\b(duolog_\w+)(?:\{(.*?)\})?", expression)
    assert asked or re.search(r'\bup\{job="duolog"\}', expression), where
    usable = set(_LABELS_OF_SCRAPES)
    for name, chosen in asked:
        assert name in known, f"{where}: there is no {name}"
        labels = set(re.findall(r"(\w+)\s*[=!]~?\"", chosen))
        assert labels <= {*known[name].labels, *_LABELS_OF_SCRAPES}, f"{where}: {name}{labels}"
        usable |= set(known[name].labels)
        if known[name].kind is not Kind.GAUGE and name not in _TOTALS:
            assert re.search(r"\b(rate|increase)\(", expression), f"{where}: {name} only grows"
    for grouped in re.findall(r"\bby \((.*?)\)", expression):
        assert set(re.split(r",\s*", grouped)) <= usable, where


def test_prometheus_and_grafana_find_their_files() -> None:
    prometheus = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yml").read_text())
    for file in prometheus["rule_files"]:
        assert (DOCKER / "prometheus" / file).exists()
    (scrape,) = prometheus["scrape_configs"]
    services = compose()["services"]
    assert scrape["static_configs"][0]["targets"] == ["bridge:7070"]
    token = scrape["authorization"]["credentials_file"]
    assert f"prometheus:user:{token}" in services["bridge"]["environment"]["DUOLOG_NEIGHBOURS"]
    assert "prometheus-token:/tokens/prometheus:ro" in services["prometheus"]["volumes"]
    provider = yaml.safe_load((DOCKER / "grafana/provisioning/dashboards/duolog.yml").read_text())[
        "providers"
    ][0]
    assert any(
        volume == f"./docker/grafana/boards:{provider['options']['path']}:ro"
        for volume in services["grafana"]["volumes"]
    )
    source = yaml.safe_load(
        (DOCKER / "grafana/provisioning/datasources/prometheus.yml").read_text()
    )
    board = json.loads((DOCKER / "grafana/boards/duolog.json").read_text())
    used = {panel["datasource"]["uid"] for panel in board["panels"] if "datasource" in panel}
    assert used == {source["datasources"][0]["uid"]}


def test_panels_do_not_cover_each_other() -> None:
    board = json.loads((DOCKER / "grafana/boards/duolog.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        cells = {
            (place["x"] + right, place["y"] + down)
            for right in range(place["w"])
            for down in range(place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
