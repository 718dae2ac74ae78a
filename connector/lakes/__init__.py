"""Tables that keep their own history, into a log: as they stand first, then their changes.

`follow_delta` makes a stream of a Delta table's change data feed; `write_iceberg` is run again and
again, and writes what is new in an Iceberg table since the last time. These run on the driver.
"""

from __future__ import annotations

from duolog.connector.lakes.delta import follow_delta
from duolog.connector.lakes.iceberg import write_iceberg

__all__ = ["follow_delta", "write_iceberg"]
