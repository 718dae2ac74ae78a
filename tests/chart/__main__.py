"""Lint the chart, render it for every set of values, compare, and see that it refuses what it must.

python -m tests.chart HELM [--write]      --write: what it gives now is right
"""

from __future__ import annotations

import argparse
import difflib
import subprocess
import sys
from pathlib import Path

from tests.chart.reading import CHART, ROOT, VALUES, golden

KUBERNETES = "1.33.0"
RELEASE = ("template", "shop", "--namespace", "shop", "--kube-version", KUBERNETES)

REFUSED = (
    ("replicaCount=2", "OneOwner"),
    ("replicas=1", "replicas"),
    ("service.type=ExternalName", "service.type"),
    ("userId=0", "userId"),
    ("kafka.bootstrapServers=kafka", "bootstrapServers"),
    ("tls.clientCa=true", "ClientCaWithoutTls"),
    ("serviceMonitor.enabled=true", "MonitorWithoutToken"),
    ("kafka.passwords.existingSecret=secret", "PasswordsWithoutKafka"),
    ("kafka.settings.sasl\\.password=secret", "PasswordInValues"),
    ("config.token=secret", "PasswordInValues"),
    ("config.kafka.acks=all", "KafkaInConfig"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chart")
    parser.add_argument("helm", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    wrong = [*_linted(asked.helm), *_compared(asked.helm, write=asked.write), *_refused(asked.helm)]
    for each in wrong:
        print(each, file=sys.stderr)
    print(f"{len(VALUES)} sets of values, {len(REFUSED)} refusals, {len(wrong)} mistakes.")
    return 1 if wrong else 0


def _helm(helm: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [helm, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def _linted(helm: Path) -> list[str]:
    wrong = []
    for values in VALUES:
        done = _helm(helm, "lint", str(CHART), "--strict", "--quiet", "--values", str(values))
        if done.returncode:
            wrong.append(f"{values.name}: {done.stdout}{done.stderr}")
    return wrong


def _compared(helm: Path, *, write: bool) -> list[str]:
    wrong = []
    for values in VALUES:
        done = _helm(helm, *RELEASE, str(CHART), "--values", str(values))
        if done.returncode:
            wrong.append(f"{values.name}: {done.stderr}")
            continue
        file = golden(values)
        before = file.read_text() if file.exists() else ""
        if write:
            file.write_text(done.stdout)
        elif before != done.stdout:
            changes = difflib.unified_diff(
                before.splitlines(), done.stdout.splitlines(), str(file), "now", lineterm=""
            )
            wrong.append("\n".join(changes))
    return wrong


def _refused(helm: Path) -> list[str]:
    wrong = []
    for setting, word in REFUSED:
        done = _helm(helm, *RELEASE, str(CHART), "--set", setting)
        if done.returncode == 0 or word not in done.stderr:
            wrong.append(f"--set {setting} is not refused with {word}: {done.stderr}")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
