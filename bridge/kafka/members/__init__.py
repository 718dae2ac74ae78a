"""Native consumers as members of groups in Kafka: a proxy each.

| question | file |
|---|---|
| How does a proxy speak with its group? (pure) | `protocol.py` |
| What does one proxy do? (a thread, and the only one that uses its consumer) | `proxy.py` |
| Which proxies are there, and what does the host ask of them? | `proxies.py` |
| What do the coordinators say of a group? | `described.py` |
| What becomes of the proxies of a worker that was killed? | `left_behind.py` |
"""
