"""Spark into the log, exactly once.

Two doors to one sink, with the same options and the same promise: `format("duolog")`, the data
source, and `write_batch` and `write_stream` here.

| question                               | file                                                 |
|----------------------------------------|------------------------------------------------------|
| What can be set?                       | `options.py`                                         |
| Who writes, and is it a repeat?        | `identity.py`                                        |
| What are the doors?                    | `data_source.py`, `frames.py`                        |
| What happens on the driver?            | `sink.py`                                            |
| Which columns do the rows have?        | `arrow_rows.py`, `row_columns.py`, `nullability.py`  |
| What happens in tasks?                 | `stage.py`, `staged_part.py`                         |
| How do rows become records?            | `topic_rows.py`, `headers.py`, `table_rows.py`       |
| What was done to the rows of a table?  | `feeds/`                                             |
| Tables that keep their own history?    | `lakes/`                                             |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.connector.frames import write_batch, write_stream

__all__ = ["write_batch", "write_stream"]


def __getattr__(name: str) -> object:
    # Loaded when first asked for: tasks import their own modules from here.
    if name in __all__:
        from duolog.connector import frames

        return getattr(frames, name)
    raise AttributeError(f"module 'duolog.connector' has no attribute '{name}'")
