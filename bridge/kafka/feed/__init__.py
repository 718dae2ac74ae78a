"""What Kafka says of its groups: which one has changed, what it holds, whether it may be written.

| question | file |
|---|---|
| Which group has changed? | `reading.py` reads along, with `records.py`; or `polling.py` asks |
| What does Kafka hold of it, and how is that changed? | `coordinator.py` |
| Which groups are ours to look at? | `filters.py` |
"""
