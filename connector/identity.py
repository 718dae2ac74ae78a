"""Who writes, and which number a write has: what makes a repeat known as one.

A stream's epochs are its batch ids, under a name that survives a lost checkpoint. A batch job names
itself and its version, or it is a writer of its own that nobody repeats. The target is part of the
writer, so two writes in one foreachBatch are two writers.
"""

from __future__ import annotations

import uuid

from duolog.connector.options import SinkOptions
from duolog.errors import InvalidSetting
from duolog.log.model import Mode, Writer


def target_of(topic: str | None, table: str | None) -> str:
    """What is written to: a topic by its name, topics that the rows name, or a table's routes."""
    if table is not None:
        return f"table:{table}"
    return "topics" if topic is None else f"topic:{topic}"


def stream_name(options: SinkOptions) -> str:
    """The name under which a stream's batches are known."""
    if options.version is not None:
        raise InvalidSetting(
            "Option 'txnVersion' is for batch writes; a stream has its batch ids. Leave it out."
        )
    name = options.app_id or options.query_name
    if name is None:
        raise InvalidSetting(
            "A stream needs a name that stays the same when it is started again: by it a batch "
            "that Spark repeats is known and not written twice. Set queryName('…'), or option "
            "'txnAppId'."
        )
    return name


def stream_writer(options: SinkOptions, target: str) -> Writer:
    """A stream's writer."""
    return Writer(Mode.STREAM, stream_name(options), target)


def batch_writer(options: SinkOptions, target: str) -> tuple[Writer, int]:
    """A batch write's writer and epoch."""
    if (options.app_id is None) != (options.version is None):
        given, missing = "txnAppId", "txnVersion"
        if options.app_id is None:
            given, missing = missing, given
        raise InvalidSetting(
            f"Option '{given}' needs '{missing}': together they make a batch write safe to repeat. "
            "Give both or neither."
        )
    if options.app_id is None or options.version is None:
        return Writer(Mode.BATCH, uuid.uuid4().hex, target), 0
    return Writer(Mode.BATCH, options.app_id, target), options.version


def is_anonymous(options: SinkOptions) -> bool:
    """Whether a batch write could not be known again."""
    return options.app_id is None


def anonymous_in_stream() -> InvalidSetting:
    """Inside foreachBatch, Spark runs writes again; nobody would notice."""
    return InvalidSetting(
        "This batch write runs inside a stream's foreachBatch, which Spark repeats after a "
        "failure: its records would be there twice. Set option 'txnAppId' to a name for this "
        "write, and 'txnVersion' to the batch id that foreachBatch is given."
    )
