"""The processes of this drill: `python -m tests.drills.host.worker '{"role": "host", …}'`.

They say what happens in lines of JSON, and end with the process that started them.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys

_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def main() -> None:
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    arguments = json.loads(sys.argv[1])
    role = arguments.pop("role")
    if role == "host":
        from tests.drills.host.hosting import host

        host(**arguments)
    else:
        from tests.drills.host.sinking import sink

        sink(**arguments)


if __name__ == "__main__":
    main()
