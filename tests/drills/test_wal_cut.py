"""The write-ahead log is cut at every byte of its last two records: a prefix, or a refusal.

With the mark as it is, whatever is missing had been durable: the log is refused, and left as it is,
so that it opens again once the bytes are back. With an older mark, as a power loss may leave it,
the log opens with what comes before the cut: a record or an epoch is there or not, whole, and there
is nothing after one that is missing.

Mutants: mark_unchecked (the mark as it is), debris_stays (an older mark).
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from duolog.log.mark import Mark
from tests.drills import worker
from tests.drills.courts import Court
from tests.drills.ledger import read_ledger, write_ledger
from tests.support.children import Child
from tests.support.wal import newest_wal, record_bounds
