"""A tree as SQL again, for messages. It parses back to the same tree."""

from __future__ import annotations

import re

from duolog.log.routing.filter.tree import (
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Comparison,
    Constant,
    In,
    Is,
    Like,
    Negative,
    Node,
    Not,
    Operation,
    Or,
    Scalar,
)
