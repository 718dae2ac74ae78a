"""Group positions in both directions: what is decided is pure, what is carried out is beside it.

| question | file |
|---|---|
| Which place of one side is which of the other? | `log/offset_map.py` |
| Who made a commit? | `marks.py` |
| What brings both sides to one position? | `reconcile.py`, in the words of `decisions.py` |
| Who looks and does it? | `settler.py`, for one group, with `sides.py` (the log) and `echoes.py` |
| What does the host ask, and who waits? | `questions.py`, `waits.py` |
| When? | `settling.py` (a thread), `agenda.py`; `feed/` tells of Kafka |
| What has moved in the log? | `stored_watch.py` (a thread), `native_moves.py` |
"""
