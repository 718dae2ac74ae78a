"""Spark into the log, exactly once.

Two doors to one sink, with the same options and the same promise: `format("duolog")`, the data
source, and `write_batch` and `write_stream` here.

| question                               | file                                                 |
|----------------------------------------|------------------------------------------------------|
| What can be set?                       | `options.py`, `option_names.py`, `option_text.py`    |
| Where is the log?                      | `place.py`                                           |
| Who writes, and is it a repeat?        | `identity.py`                                        |
| What are the doors?                    | `data_source.py`, `frames.py`                        |
| What happens on the driver?            | `sink.py`                                            |
| Which batches does it take itself?     | `small_batches.py`                                   |
| Which columns do the rows have?        | `arrow_rows.py`, `row_columns.py`, `nullability.py`  |
| What happens in tasks?                 | `stage.py`, `staged_part.py`                         |
| What does a round into Python cost?    | `worker_rounds.py`                                   |
| How do rows become records?            | `topic_rows.py`, `headers.py`, `table_rows.py`       |
| In which order?                        | `sequence.py`, `versions.py`                         |
| What if a row cannot be written?       | `bad_rows.py`, `dead_letters.py`, `row_text.py`      |
| Where do those rows go?                | `dead_letter_topic.py`                               |
| May the log's disk go away?            | `throw_away.py`                                      |
| What was done to the rows of a table?  | `feeds/`                                             |
| Tables that keep their own history?    | `lakes/`                                             |
| How is a topic read back?              | `source/`                                            |
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.connector.frames import write_batch, write_stream
    from duolog.connector.source.run_available import run_available

__all__ = ["run_available", "write_batch", "write_stream"]

_FILES = {
    "run_available": "source.run_available",
    "write_batch": "frames",
    "write_stream": "frames",
}


def __getattr__(name: str) -> object:
    # Loaded when first asked for: tasks import their own modules from here.
    if name in _FILES:
        return getattr(import_module(f"duolog.connector.{_FILES[name]}"), name)
    raise AttributeError(f"module 'duolog.connector' has no attribute '{name}'")
