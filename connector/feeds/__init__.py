"""Change feeds: what was done to a table's rows, as Delta, Iceberg, Debezium or plain rows tell it.

| question                         | file                                          |
|----------------------------------|-----------------------------------------------|
| What does every feed promise?    | `feed.py`                                     |
| Which feed is this?              | `find.py`                                     |
| How are rows read?               | `appended.py`, `versioned.py`, `debezium*.py` |
| Which two images are one update? | `pairing.py`, `left_over.py`                  |

These run in Spark tasks and need nothing but pyarrow and numpy.
"""

from __future__ import annotations

from duolog.connector.feeds.feed import Feed, FeedCounts, FeedReader, Ordered
from duolog.connector.feeds.find import CHANGES, feed_for

__all__ = ["CHANGES", "Feed", "FeedCounts", "FeedReader", "Ordered", "feed_for"]
