"""Strings and bytes as the inside of JSON strings."""

from __future__ import annotations

import binascii

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duolog.log.routing.json_text import characters, from_characters

_NAMED = {0x08: b"\\b", 0x09: b"\\t", 0x0A: b"\\n", 0x0C: b"\\f", 0x0D: b"\\r"}
_NAMED |= {0x22: b'\\"', 0x5C: b"\\\\"}
_ESCAPES = {byte: b"\\u%04x" % byte for byte in range(0x20)} | _NAMED
_LONGEST = 6

_SIZE = np.ones(256, np.int64)
_TEXT = np.zeros((256, _LONGEST), np.uint8)
for _byte, _escape in _ESCAPES.items():
    _SIZE[_byte] = len(_escape)
    _TEXT[_byte, : len(_escape)] = np.frombuffer(_escape, np.uint8)


def escaped(text: pa.StringArray) -> pa.StringArray:
    """With backslashes where JSON demands them; all else, UTF-8 too, stays as it is."""
    bounds, content = characters(text)
    special = np.flatnonzero((content < 0x20) | (content == 0x22) | (content == 0x5C))
    if not special.size:
        return text
    rows = np.unique(np.searchsorted(bounds, special, side="right") - 1)
    if len(rows) * 2 > len(text):
        return _rewritten(text)
    chosen = np.zeros(len(text), np.bool_)
    chosen[rows] = True
    return pc.replace_with_mask(text, pa.array(chosen), _rewritten(text.take(pa.array(rows))))


def _rewritten(text: pa.StringArray) -> pa.StringArray:
    bounds, content = characters(text)
    size = _SIZE[content]
    special = np.flatnonzero(size > 1)
    byte, width = content[special], size[special]
    growth = np.concatenate(([0], np.cumsum(width - 1)))
    written = np.repeat(content, size)
    begins = special + growth[:-1]
    for place in range(_LONGEST):
        reaches = width > place
        written[begins[reaches] + place] = _TEXT[byte[reaches], place]
    return from_characters(bounds + growth[np.searchsorted(special, bounds)], written, text)


def base64_text(values: pa.BinaryArray) -> pa.StringArray:
    """Base64 with padding, all values by one call: each is filled up to three bytes first."""
    lengths = pc.binary_length(values).fill_null(0).to_numpy().astype(np.int64)
    lacking = -lengths % 3
    filler = pa.array([b"", b"\0", b"\0\0"]).take(pa.array(lacking))
    filled = pc.binary_join_element_wise(values.fill_null(b""), filler, b"")
    _, content = characters(filled)
    encoded = np.frombuffer(binascii.b2a_base64(content.data, newline=False), np.uint8).copy()
    ends = np.cumsum((lengths + lacking) // 3 * 4)
    encoded[ends[lacking > 0] - 1] = ord("=")
    encoded[ends[lacking > 1] - 2] = ord("=")
    return from_characters(np.concatenate(([0], ends)), encoded, values)
