"""`duolog demo`: all of it on one machine, from a Delta table to a proof.

| question | file |
|---|---|
| Where does everything lie? | `places.py` |
| Who is started, and ended? | `children.py` |
| The shop whose orders change, in Spark | `shop.py` |
| Who reads? | `kafka_member.py`, `native_member.py`; what each did: `ledger.py` |
| How far is everybody? | `sight.py`; how it looks: `screen.py` |
| What happens when? | `acts.py` |
| Was it exactly once? | `proof.py` |
"""
