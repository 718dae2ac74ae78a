"""Whether what was sent is text."""

from __future__ import annotations


def is_utf8(body: bytes | bytearray) -> bool:
    """Whether JSON may be read from it as UTF-8.

    `json.loads` guesses other encodings by their NUL bytes, and lets halves of surrogate pairs pass
    in all of them.
    """
    if b"\0" in body:
        return False
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True
