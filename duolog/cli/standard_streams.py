"""Standard input, output and error, also where whoever started the program has closed them."""

from __future__ import annotations

import os
import sys


def have_standard_streams() -> None:
    """Where one was closed, take the null device. Else the log's files would get its number, and
    what is printed could land in them.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
