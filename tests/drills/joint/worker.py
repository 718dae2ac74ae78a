"""The Kafka worker as a child, with a mutant."""

from __future__ import annotations

import os
import sys

from duolog.bridge.kafka.worker import main
from tests.drills.joint.mutants import VARIABLE, WORKER

if __name__ == "__main__":
    WORKER[os.environ[VARIABLE]]()
    sys.exit(main())
