"""The command line.

- stdout carries results alone: a table for people, or with --json one JSON object a line. What
  people should know besides goes to stderr.
- Exit code 0 is success and nothing else; 1 an error that Duolog names, 2 a command that cannot be
  meant so, 130 Ctrl-C, 141 a reader that has gone away (`| head`), without a message.
- An error is one message on stderr; with --json it is {"error": message, "code": name}, on stderr
  as well, so that stdout holds nothing but results.
- What a log, a host, Kafka or a file says is shown, and nothing of it is obeyed: all is printed by
  `duolog/output.py`.
- Nothing heavy is imported before a command runs, so --help and --version are quick.
"""

from __future__ import annotations


def main() -> None:
    """Run the program."""
    from duolog.cli.standard_streams import have_standard_streams
    from duolog.output import (
        escape_what_stdout_cannot_encode,
        leave_stderr,
        print_tracebacks_safely,
    )

    have_standard_streams()
    escape_what_stdout_cannot_encode()
    print_tracebacks_safely()
    from duolog.cli.program import app

    try:
        app()
    finally:
        leave_stderr()
