"""Decoding one stored batch, wherever that is done, and the words for one that cannot be."""

from __future__ import annotations

import re
import struct
from typing import Any, Final

import pyarrow as pa

from duolog.errors import DamagedLog
from duolog.log.batch import decode, read_header

UNREADABLE: Final = (DamagedLog, pa.ArrowException, OSError, ValueError, struct.error)
"""What decoding raises for a damaged batch."""


def decoded(encoded: bytes) -> Any:
    """The records of a batch; one of UNREADABLE when it is damaged."""
    records = decode(encoded)
    count = read_header(encoded).count
    if records.num_rows != count:
        raise DamagedLog(f"Its header names {count} records, and it has {records.num_rows}.")
    return records


def reason_of(error: BaseException) -> str:
    """Why a batch cannot be decoded, as sentences, without what is to be done."""
    text = " ".join(str(error).split()) or type(error).__name__
    told = [each for each in re.split(r"(?<=\.) ", text) if "estore the log" not in each]
    text = " ".join(told) or "It cannot be decoded."
    return text if text.endswith(".") else f"{text}."
