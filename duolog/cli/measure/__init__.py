"""`duolog bench`: how fast this machine is at it, in seconds rather than minutes.

Each measures things of one kind side by side, in one unit, so that the bars say what the figures of
one machine can: how they compare. What the product promises is measured by the repository's own
benchmarks, at length and beside other programs.

| question | file |
|---|---|
| What is said of a measurement? | `bars.py` |
| What is written? | `records.py` |
| Which measurements are there? | `suite.py`; one file each |
"""
