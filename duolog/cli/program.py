"""The program: all commands, and how each of them ends."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from duolog import output
from duolog.cli import (
    acknowledge,
    audit,
    backup,
    bench,
    consume,
    demo,
    doctor,
    groups,
    kafka,
    mirror,
    publish,
    registry,
    restore,
    serve,
    sources,
    sql,
    token,
    topics,
    writers,
)
from duolog.errors import DuologError, OutputFailed, ToolMissing
from duolog.printable import printable

INTERRUPTED = 130
READER_GONE = 141  # as a program that SIGPIPE has ended

# Typer brings its own click in later versions and does not export this class.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Program(TyperGroup):
    """All commands. Turns what they raise into messages and exit codes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["duolog.json"] = "--json" in args
        try:
            parsed: list[str] = super().parse_args(ctx, args)
        except UsageError as error:
            raise _printable(error) from None
        return parsed

    def invoke(self, ctx: Any) -> Any:
        as_json = bool(ctx.meta["duolog.json"])
        try:
            result = super().invoke(ctx)
            output.flush()
        except OutputFailed as error:
            output.forget_stdout()
            output.error(str(error), error.code, as_json=as_json)
            raise typer.Exit(1) from error
        except DuologError as error:
            output.error(str(error), error.code, as_json=as_json)
            raise typer.Exit(1) from error
        except ModuleNotFoundError as error:
            from duolog.cli.extras import what_to_install

            advice = what_to_install(error)
            if advice is None:
                raise
            output.error(advice, ToolMissing.code, as_json=as_json)
            raise typer.Exit(1) from error
        except UsageError as error:
            if not as_json:
                raise _printable(error) from None
            output.error(_said(error), "UsageError", as_json=True)
            raise typer.Exit(2) from error
        except BrokenPipeError as error:
            output.forget_stdout()
            raise typer.Exit(READER_GONE) from error
        except KeyboardInterrupt as error:
            raise typer.Exit(INTERRUPTED) from error
        return result


def _printable(error: Exception) -> Exception:
    """The same, for Typer to show: it repeats what was typed."""
    return UsageError(printable(_said(error)), getattr(error, "ctx", None))


def _said(error: Exception) -> str:
    said: str = error.format_message()  # type: ignore[attr-defined]
    return said


app = typer.Typer(
    name="duolog",
    cls=Program,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Duolog: an embedded, exactly-once topic log for change events.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        output.line(f"duolog {version('duolog')}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    del version


topics.app.command()(sources.add_source)
topics.app.command()(sources.drop_source)
app.add_typer(topics.app, name="topic")
app.add_typer(groups.app, name="group")
app.command()(publish.publish)
app.command(name="produce", hidden=True)(publish.publish)
app.command()(consume.consume)
app.add_typer(writers.app, name="writer")
app.command()(acknowledge.ack)
app.command()(sql.sql)
app.command()(serve.serve)
app.add_typer(mirror.app, name="mirror")
app.command()(audit.audit)
app.command()(backup.backup)
app.command()(restore.restore)
app.add_typer(token.app, name="token")
app.command()(registry.registry)
app.command()(kafka.kafka)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.command()(bench.bench)
