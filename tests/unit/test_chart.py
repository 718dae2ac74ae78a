"""The chart, by what it gave for some sets of values. `make helm` says whether it still does."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from duolog.bridge.kafka.settings import KafkaSettings
from duolog.settings import load_settings
from tests.chart.reading import (
    CHART,
    VALUES,
    default_values,
    documented_values,
    golden,
    objects,
    schema_names,
)


def stateful_set(values: Path) -> dict[str, Any]:
    (found,) = (each for each in objects(golden(values)) if each["kind"] == "StatefulSet")
    return found


def pod_of(values: Path) -> dict[str, Any]:
    pod: dict[str, Any] = stateful_set(values)["spec"]["template"]["spec"]
    return pod


def flat(value: Any) -> Iterator[str]:
    """Every text in it."""
    if isinstance(value, dict):
        for each in value.values():
            yield from flat(each)
    elif isinstance(value, list):
        for each in value:
            yield from flat(each)
    else:
        yield str(value)


each_set = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)


@each_set
def test_each_set_of_values_has_objects_with_names_and_labels(values: Path) -> None:
    found = objects(golden(values))
    assert {"ConfigMap", "Service", "ServiceAccount", "StatefulSet"} <= {
        each["kind"] for each in found
    }
    for each in found:
        assert each["apiVersion"]
        assert each["metadata"]["labels"]["app.kubernetes.io/instance"] == "shop"
    names = [(each["kind"], each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)


@each_set
def test_the_pod_is_restricted(values: Path) -> None:
    pod = pod_of(values)
    assert pod["automountServiceAccountToken"] is False
    security = pod["securityContext"]
    assert security["runAsNonRoot"] is True
    assert security["runAsUser"] > 0
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert all("hostPath" not in volume for volume in pod["volumes"])
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]


@each_set
def test_there_is_one_owner_and_its_log_outlives_it(values: Path) -> None:
    spec = stateful_set(values)["spec"]
    assert spec["replicas"] == 1
    assert set(spec["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}
    (claim,) = spec["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"][0] in {"ReadWriteOnce", "ReadWriteOncePod"}
    services = {e["metadata"]["name"]: e for e in objects(golden(values)) if e["kind"] == "Service"}
    assert services[spec["serviceName"]]["spec"]["clusterIP"] == "None"


@each_set
def test_the_probes_ask_what_the_host_answers(values: Path) -> None:
    (container,) = pod_of(values)["containers"]
    tls = "--tls-certificate" in container["args"]
    for name, path in (
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ):
        probe = container[name]
        if "--tls-client-ca" in container["args"]:
            assert probe["tcpSocket"] == {"port": "http"}
        else:
            assert probe["httpGet"]["path"] == path
            assert probe["httpGet"].get("scheme", "HTTP") == ("HTTPS" if tls else "HTTP")


@each_set
def test_what_is_mounted_is_there(values: Path) -> None:
    pod = pod_of(values)
    (container,) = pod["containers"]
    (claim,) = stateful_set(values)["spec"]["volumeClaimTemplates"]
    volumes = {volume["name"] for volume in pod["volumes"]} | {claim["metadata"]["name"]}
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert set(mounted.values()) == volumes
    named = [each for each in flat([container["args"], container.get("env")]) if each[:1] == "/"]
    for file in named:  # everything that a flag or a variable names
        assert any(file.startswith(f"{path}/") for path in mounted), file


@each_set
def test_the_host_takes_its_settings(
    values: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config,) = (each for each in objects(golden(values)) if each["kind"] == "ConfigMap")
    file = tmp_path / "duolog.toml"
    file.write_text(config["data"]["duolog.toml"])
    (container,) = pod_of(values)["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value", '{"sasl.password": "0pen"}'))
    settings = load_settings({}, file=file)
    assert settings.log == "/data/log"
    kafka = settings.kafka_options()
    given = yaml.safe_load(values.read_text()).get("kafka")
    assert bool(kafka) == bool(given)
    if given:
        servers = kafka.pop("bootstrap.servers")
        assert servers == given["bootstrapServers"]
        made = KafkaSettings.of(servers, kafka)
        if "passwords" in given:  # of the file and of the variable, together
            assert made.for_confluent()["sasl.password"] == "0pen"
            assert made.for_confluent()["ssl.ca.location"] == "/secrets/kafka-tls/ca.crt"
            assert "0pen" not in config["data"]["duolog.toml"]
    settings.host_options()


def test_what_makes_maintenance_harder_is_off() -> None:
    (plain,) = (values for values in VALUES if values.stem == "plain")
    assert sorted(each["kind"] for each in objects(golden(plain))) == [
        "ConfigMap",
        "Service",
        "Service",
        "ServiceAccount",
        "StatefulSet",
    ]


def test_each_value_is_in_the_schema_and_in_the_readme() -> None:
    defaults = default_values()
    assert documented_values() == defaults
    assert schema_names() - {"global", "resources.limits.cpu"} >= defaults.keys()
    undescribed = schema_names() - defaults.keys()
    assert undescribed == {
        "global",
        "resources.limits.cpu",
        "resources.limits.ephemeral-storage",
        "resources.requests.ephemeral-storage",
    }


def test_the_schema_takes_the_defaults_and_refuses_more_owners() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())
    jsonschema.validate(defaults, schema)
    for wrong, word in (
        ({"replicaCount": 2}, "OneOwner"),
        ({"replicas": 1}, "replicas"),
        ({"userId": 0}, "minimum"),
        ({"kafka": {"bootstrapServers": "kafka"}}, "does not match"),
        ({"topics": {"orders": 0}}, "minimum"),
    ):
        with pytest.raises(jsonschema.ValidationError, match=word):
            jsonschema.validate({**defaults, **wrong}, schema)


def test_the_chart_runs_the_version_that_it_lies_beside() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((CHART.parents[1] / "pyproject.toml").read_text())["project"]
    assert chart["appVersion"] == project["version"] == version("duolog")
