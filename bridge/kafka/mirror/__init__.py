"""From the log into Kafka: each record once, in order, byte by byte.

| question | file |
|---|---|
| Where do log offsets lie in Kafka? | `../runs.py` (pure) |
| How far does Kafka have it? | `recovery.py` (pure), asked by `recovering.py` |
| How are records cut into batches, and which does Kafka not take? | `pieces.py` (pure) |
| What is to be done after an answer? | `reactions.py` (pure) |
| Can a Kafka topic hold a topic of the log? | `fitness.py` (pure), asked by `topic_side.py` |
| How is Kafka asked? | `port.py` over `connections.py`; topics and their settings: `topics.py` |
| How do batches go out? | `in_turn.py` |
| How is the log read, and how are runs stored in it? | `heads.py`, `reading.py`, `storing.py` |
| One partition, from recovery to its end | `partition.py` |
| All partitions of a log | `mirroring.py`; what they share: `shared.py`, `budget.py` |
| What becomes of records that Kafka does not take? | `refused.py` |
| How does a mirror begin anew? | `restarting.py` |
"""
