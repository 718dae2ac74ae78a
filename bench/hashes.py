"""What the two hashes over whole columns cost: the content of epochs, and Kafka's partitions."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, ClassVar

from bench.figures import Report
from bench.orders import RECORD_BYTES, orders
from bench.rounds import figure, seconds_of, take_turns
from bench.scratch import Scratch
from duolog.log.routing.content_hash import content_sum
from duolog.log.routing.murmur2 import murmur2
from duolog.log.routing.murmur2_scalar import partition_of_key


@dataclass(frozen=True, slots=True)
class HashBenchmark:
    """Both hashes over the same records, against what one would do without them."""

    name: ClassVar[str] = "hash"
    by_itself: ClassVar[bool] = False
    disk_bytes: ClassVar[int] = 0

    records: int = 500_000
    scalar_records: int = 20_000
    rounds: int = 7

    def run(self, scratch: Scratch) -> Report:
        del scratch
        records = orders(self.records)
        key, value = records.column("key"), records.column("value")
        few_keys = key.slice(0, self.scalar_records).to_pylist()
        content = value.buffers()[2]

        def per_second(work: Any, of: int) -> float:
            return of / seconds_of(work)

        samples = take_turns(
            self.rounds,
            {
                "content": lambda: per_second(lambda: content_sum(key, value), self.records),
                "crc": lambda: per_second(lambda: zlib.crc32(content), self.records),
                "murmur2": lambda: per_second(lambda: murmur2(key), self.records),
                "scalar": lambda: per_second(
                    lambda: [partition_of_key(one, 8) for one in few_keys], len(few_keys)
                ),
            },
        )
        return Report(
            self.name,
            f"{RECORD_BYTES} B records, their keys of 12 B, on one core.",
            "content: one crc32 over all values; murmur2: key by key in Python.",
            (
                figure("content of records", "/s", samples["content"], samples["crc"]),
                figure("murmur2 of keys", "/s", samples["murmur2"], samples["scalar"]),
            ),
        )
