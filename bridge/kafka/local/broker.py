"""One Kafka node on loopback, with its own controller."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from duolog.bridge.kafka.local.certificates import Authority
from duolog.bridge.kafka.local.distribution import KAFKA_VERSION, kafka_jars
from duolog.bridge.kafka.local.doors import Security
from duolog.bridge.kafka.local.kept import KeptProcess
from duolog.bridge.kafka.local.lock import held_folder
from duolog.bridge.kafka.local.ports import check_free, free_port
from duolog.bridge.kafka.local.properties import (
    CLIENTS,
    LOOPBACK,
    Listener,
    as_text,
    broker_properties,
    logging_properties,
)
from duolog.bridge.kafka.local.ready import cluster_at
from duolog.bridge.kafka.local.storage import cluster_of, format_storage
from duolog.bridge.kafka.local.trouble import is_taken_port, last_lines, told
from duolog.errors import InvalidSetting, LocalKafkaFailed, PortTaken
from duolog.jars import Progress, find_java

_PORT_TRIES = 5
_ASK_AGAIN_SECONDS = 0.05
_ANSWER_SECONDS = 2.0
_SMALLEST_HEAP_MEGABYTES = 128


class LocalKafka:
    """A broker in a process of its own. It ends with this one at the latest, whatever happens.

    Without a folder it lives in a temporary one, which `close` removes. Port 0 takes a free port
    and keeps it. `properties` are settings of Kafka; they go over those made here.

    `java_options` go to Java: `-XX:TieredStopAtLevel=1` takes half the processor time to
    start and is slower then, which suits drills that restart often.

    `security` gives it doors beside the plain listener; `address_of` says where they are, and
    `authority` makes what clients show there.

    start, stop and kill keep folder and ports: what was acknowledged is there after the next start.
    Not for use by several threads at once.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        security: Security | None = None,
        heap_megabytes: int = 1024,
        java_options: Sequence[str] = (),
        start_seconds: float = 60.0,
        stop_seconds: float = 20.0,
        progress: Progress | None = None,
    ) -> None:
        if heap_megabytes < _SMALLEST_HEAP_MEGABYTES:
            raise InvalidSetting(
                f"A broker does not run in {heap_megabytes} MiB of heap: give it "
                f"{_SMALLEST_HEAP_MEGABYTES} or more."
            )
        if folder is not None and "," in str(folder):
            raise InvalidSetting(f"Kafka takes no folder with a comma in its name, as in {folder}.")
        self._given_folder = None if folder is None else Path(folder).expanduser().absolute()
        self._given_port = port
        self._properties = dict(properties or {})
        self.security = security or Security(())
        self._door_ports: dict[str, int] = {}
        self._java_options = [
            *(f"-Xmx{heap_megabytes}m", *self.security.java_options, *java_options)
        ]
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._progress = progress
        self._folder = self._given_folder
        self._port = port
        self._process: KeptProcess | None = None

    @property
    def folder(self) -> Path:
        """Its data, settings and log."""
        if self._folder is None:
            raise LocalKafkaFailed("This broker has not been started yet: it has no folder.")
        return self._folder

    @property
    def log_file(self) -> Path:
        return self.folder / "server.log"

    @property
    def port(self) -> int:
        if not self._port:
            raise LocalKafkaFailed("This broker has not been started yet: it has no port.")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def address_of(self, door: str) -> str:
        """The bootstrap servers of one of its doors, by the door's name."""
        if door not in self._door_ports:
            raise LocalKafkaFailed(f"This broker has not been started, or has no door {door}.")
        return f"{LOOPBACK}:{self._door_ports[door]}"

    @property
    def authority(self) -> Authority:
        """Who signs its certificates."""
        return Authority(self.folder / "certificates")

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.exit_code is None

    @property
    def pid(self) -> int:
        """The broker's own process: for drills that freeze or measure it."""
        if self._process is None or self._process.pid is None or not self.running:
            raise LocalKafkaFailed("This broker does not run: it has no process.")
        return self._process.pid

    def start(self) -> None:
        """Start it, unless it runs, and wait until it takes work."""
        if self.running:
            return
        self.stop()  # lets go of one that ended by itself
        java, jars = find_java(), kafka_jars(self._progress)
        with held_folder(self._make_folder()) as lock:
            for attempt in range(_PORT_TRIES):
                if self._port:
                    check_free(self._port)
                try:
                    self._start_on(self._port or free_port(), java, jars, lock)
                except PortTaken:  # somebody took one of the ports in between
                    if attempt == _PORT_TRIES - 1:
                        raise
                else:
                    return

    def _make_folder(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="duolog-kafka-"))
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSetting(
                f"Kafka's folder {self._folder} cannot be made: {error.strerror}. Name another."
            ) from error
        return self._folder

    def _start_on(self, port: int, java: str, jars: list[Path], lock: int) -> None:
        settings, logging = self.folder / "broker.properties", self.folder / "log4j2.properties"
        data = self.folder / "data"
        ports = dict(self._door_ports)
        for door in self.security.doors:
            if door.title not in ports:
                ports[door.title] = free_port({port, *ports.values()})
        doors = [
            Listener(door.title, ports[door.title], door.protocol) for door in self.security.doors
        ]
        properties = broker_properties(
            data,
            [Listener(CLIENTS, port), *doors],
            free_port({port, *ports.values()}),
            {**self._secured(), **self._properties},
        )
        settings.touch()
        settings.chmod(0o600)  # it may hold passwords
        settings.write_text(as_text(properties), encoding="ascii")
        logging.write_text(as_text(logging_properties()), encoding="ascii")
        cluster = cluster_of(data) or format_storage(
            java, jars, settings, data, self.security.scram_arguments()
        )
        log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._process = KeptProcess(
            [
                java,
                *self._java_options,
                "-XX:+ExitOnOutOfMemoryError",
                "-Djava.awt.headless=true",
                f"-Dlog4j2.configurationFile={logging}",
                *("-cp", str(jars[0].parent / "*")),
                *("kafka.Kafka", str(settings)),
            ],
            self.log_file,
            grace_seconds=self._stop_seconds,
            inherited=lock,
        )
        try:
            self._wait_until_ready(self._process, port, cluster, log_start)
        except BaseException:
            self.kill()
            raise
        self._port, self._door_ports = port, ports

    def _secured(self) -> dict[str, str]:
        """The settings of its doors, with certificates made for those that show one."""
        with_tls = [door for door in self.security.doors if door.has_tls]
        if not with_tls:
            return self.security.properties({}, None)
        authority = self.authority
        certificates = {
            door.title: authority.server(door.title, door.host_names) for door in with_tls
        }
        return self.security.properties(certificates, authority.certificate_file)

    def _wait_until_ready(
        self, process: KeptProcess, port: int, cluster: str, log_start: int
    ) -> None:
        deadline = time.monotonic() + self._start_seconds
        while cluster_at(port, _ANSWER_SECONDS) != cluster:
            if process.exit_code is not None:
                what = f"ended with {process.exit_code} before it was ready"
            elif time.monotonic() > deadline:
                what = f"was not ready within {self._start_seconds:.0f} s"
            else:
                time.sleep(_ASK_AGAIN_SECONDS)
                continue
            lines = last_lines(self.log_file, log_start)
            if is_taken_port(lines):
                raise PortTaken(f"Another program took a port of the broker in {self.folder}.")
            raise LocalKafkaFailed(f"Kafka {KAFKA_VERSION} in {self.folder} {what}. {told(lines)}")

    def stop(self) -> None:
        """End it in order: SIGTERM, then after a while SIGKILL. Its data stay."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def kill(self) -> None:
        """End it with kill -9, as drills do. Its data stay."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    def restart(self) -> None:
        """Stop it and start it on the same data and port."""
        self.stop()
        self.start()

    def wait(self) -> None:
        """Wait until it ends by itself, which is a failure."""
        if self._process is not None:
            code = self._process.wait()
            raise LocalKafkaFailed(
                f"Kafka {KAFKA_VERSION} in {self.folder} ended with {code}. "
                f"{told(last_lines(self.log_file))}"
            )

    def close(self) -> None:
        """Stop it, and remove its folder if that is a temporary one."""
        self.stop()
        if self._given_folder is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder, self._port, self._door_ports = None, self._given_port, {}

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
