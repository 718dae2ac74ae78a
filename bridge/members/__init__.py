"""Groups whose consumers share a topic's partitions: who is a member, and who has which partition.

| question | file |
|---|---|
| What is known of a group in one topic? (plain values) | `model.py` |
| What becomes of it when members come, go, ask and acknowledge? (pure) | `membership.py` |
| Who is to have which partition? (pure) | `assignment.py` |
| Who may ask what? (pure) | `admission.py` |
| How many are there, and may one more come? | `roll.py` |
| Who keeps it, wakes who waits, and looks at the clock? | `coordinator.py`, `gathering.py` |
| Who are the members, for those who look? | `attendance.py` |
| Who assigns where Kafka's consumers are members too? | `kafka_seats.py`, with the Kafka worker |
"""
