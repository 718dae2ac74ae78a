"""`duolog demo`"""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from duolog import output
from duolog.cli.demo_ready import check_machine, new_folder
from duolog.cli.options import AsJson
from duolog.cli.story import Story

if TYPE_CHECKING:
    from duolog.demo.acts import Result
    from duolog.demo.places import Places

_INTERRUPTED: Final = 130


def demo(
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="H:P",
            help="A Kafka to use; it gets a topic of its own.",
            show_default="one that is started for it",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=8, max=3600, help="How long the shop is open.")
    ] = 40,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A new or empty directory to work in.",
            show_default="a temporary one",
        ),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Only fetch what it needs, for later without network.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """The whole story on this machine: Spark, the log, Kafka, one group on both sides.

    A Spark job writes the changes of a Delta table into a log, which is
    mirrored into a real Kafka. Kafka consumers and native consumers read it
    as one group; one of them is killed, and so is the process that mirrors.
    Ends with a proof, and with 0 only if it holds. Needs Java 17.
    """
    check_machine()
    if fetch:
        _fetch(as_json=as_json)
        return
    from duolog.demo.children import held

    where = new_folder(folder)
    story = Story(as_json=as_json)
    story.begin("Duolog: one log, two tongues.")
    try:
        with _ended_by_signals(), held(where) as lock:
            _tell(story, where, lock, bootstrap_servers, seconds, as_json=as_json)
    except KeyboardInterrupt:
        output.note(f"\nEnded. Nothing is left running; what there was is in {where}.")
        raise typer.Exit(_INTERRUPTED) from None
    if story.failed:
        story.end([f"Not as it should be. Everything is left in {where}."])
        raise typer.Exit(1)


def _fetch(*, as_json: bool) -> None:
    from duolog.demo.jars import all_jars
    from duolog.jars import cache_folder

    all_jars(silent=as_json, with_kafka=True)
    if as_json:
        output.json_line({"cache": str(cache_folder())})
    else:
        output.note(f"All that the demo needs is in {cache_folder()}.")


def _tell(
    story: Story,
    where: Path,
    lock: int,
    bootstrap_servers: str | None,
    seconds: float,
    *,
    as_json: bool,
) -> None:
    from duolog.demo.acts import Stage, kafka_at, play
    from duolog.demo.children import Children
    from duolog.demo.jars import all_jars
    from duolog.demo.places import Places
    from duolog.demo.screen import Screen, waiting

    # In a Kafka that others use, names must not meet theirs.
    places = Places(where, "" if bootstrap_servers is None else f"-{where.name[-8:]}")
    jars = all_jars(silent=as_json, with_kafka=bootstrap_servers is None)
    with ExitStack() as ending:
        story.step("A Kafka, a log, a host")
        with waiting("Kafka comes up", silent=as_json):
            servers = ending.enter_context(kafka_at(places, bootstrap_servers))
        children = ending.enter_context(Children(places, lock))
        story.tell(f"Kafka takes work at {servers}.")
        stage = Stage(places, children, servers)
        with waiting("The host comes up", silent=as_json):
            stage.open_log()
        story.tell(f"`duolog serve` owns and mirrors the log: {stage.url}")
        story.step("A Spark job writes the changes of a Delta table")
        with waiting("Spark comes up, and the table gets its first orders", silent=as_json):
            stage.open_shop(jars)
            first = stage.first_orders()
        story.tell(f"follow_delta has written the table's first {first:,} orders.")
        story.step("Kafka and native consumers read them, as one group")
        result = play(stage, seconds, Screen(silent=as_json))
        story.step("The proof")
        _check(story, result)
        if as_json:
            output.json_line(result.as_json())
    if not story.failed:
        story.end(_what_to_try(places, own_kafka=bootstrap_servers is None))


def _check(story: Story, result: Result) -> None:
    work, report = result.work, result.report
    story.check(
        f"Kafka's {result.sight.written:,} events add up to the table, row by row: "
        f"{result.table_rows:,}",
        holds=result.is_same_table and result.table_rows > 0,
    )
    twice = f", {work.twice:,} by two" if work.twice else ", and by one alone"
    story.check(
        f"Each of the events was done by a consumer{twice}",
        holds=work.left_out == 0 and work.records == result.sight.written,
    )
    story.check(
        f"Process {result.killed_worker} was killed while it mirrored; Kafka has nothing twice",
        holds=result.killed_worker > 0 and result.is_same_table,
    )
    story.check(
        f"duolog audit: {report.compared:,} records, {len(report.positions)} positions of the "
        "group: equal",
        holds=report.is_equal and report.compared == result.sight.written,
    )


def _what_to_try(places: Places, *, own_kafka: bool) -> list[str]:
    program, log = _program(), shlex.quote(str(places.log))
    lines = [
        "Nothing is left running. What there was is still there to try:",
        "",
        f"  {program} topic describe {places.topic} --log {log}",
        f"  {program} consume {places.topic} --from earliest --limit 3 --log {log}",
        f"  {program} group describe {places.group} --log {log}",
    ]
    if own_kafka:
        kafka = shlex.quote(str(places.kafka))
        lines += [
            "",
            "and the Kafka, with the mirror going on:",
            "",
            f"  {program} kafka --data {kafka}",
            f"  {program} serve --log {log} --bootstrap-servers 127.0.0.1:9092",
        ]
    return lines


def _program() -> str:
    """How this program was called, as it can be typed again."""
    called = Path(sys.argv[0])
    if called.name != "duolog":
        return f"{shlex.quote(sys.executable)} -m duolog.cli"
    on_path = shutil.which("duolog")
    if on_path is not None and Path(on_path).resolve() == called.resolve():
        return "duolog"
    if called.is_absolute() and called.is_relative_to(Path.cwd()):
        called = called.relative_to(Path.cwd())
    return shlex.quote(str(called))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM is like Ctrl-C; a second one does not interrupt what ends everything."""

    def end(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
