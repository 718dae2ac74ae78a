"""A log read back into Spark, as Spark's Kafka source reads Kafka.

| question                                     | file                               |
|----------------------------------------------|------------------------------------|
| What can be set?                             | `options.py`                       |
| Which topics and partitions?                 | `choice.py`                        |
| Where does a read begin and end?             | `points.py`, `resolving.py`        |
| What does a batch read take?                 | `batch.py`, `ranges.py`            |
| How far does a micro-batch go?               | `stream.py`, `limits.py`           |
| What lies in the checkpoint?                 | `offset.py`                        |
| What if records are gone?                    | `losses.py`                        |
| What happens in tasks?                       | `reading.py`, `columns.py`         |
| How do bytes become columns?                 | `decoding.py`, `spark_types.py`    |
"""
