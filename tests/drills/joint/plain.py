"""A native member that speaks plain HTTP: it polls and acknowledges when a drill says so, and its
polls are all that is heard of it.
"""

from __future__ import annotations

import http.client
import json
from base64 import b64decode
from typing import Any
from urllib.parse import urlsplit

from tests.drills.joint.consumers import DEADLINE_SECONDS, Ledger

OK = 200

Answer = tuple[int, dict[str, Any]]


class PlainMember:
    """Carries what it is told."""

    def __init__(self, name: str, ledger: Ledger, url: str, topic: str, group: str) -> None:
        self.name = f"plain-{name}"
        self._ledger = ledger
        self._address = str(urlsplit(url).netloc)
        self._names = {"topic": topic, "group_id": group}
        self._told: dict[str, Any] = {}
        self.next_offsets: dict[int, int] = {}

    @property
    def ids(self) -> dict[str, Any]:
        return {name: self._told[name] for name in ("member_id", "generation")}

    @property
    def assigned(self) -> frozenset[int]:
        return frozenset(self._told.get("assigned", ()))

    def join(self, **asked: Any) -> int:
        """Ask which partitions are its own now; what is read with that is processed."""
        known = {"member_id": self._told["member_id"]} if self._told else {}
        return self._consume({**known, **asked})

    def poll(self) -> int:
        return self._consume(self.ids)

    def go_on(self, **asked: Any) -> None:
        """As a consumer does: poll, and ask anew when its partitions have changed."""
        if not self._told or self.poll() != OK:
            self.join(**asked)

    def ack(self, partition: int, upto_offset: int, **ids: Any) -> str:
        """The code of the refusal; empty when it is taken."""
        body = {**self.ids, **ids, "partition_id": partition, "upto_offset": upto_offset}
        status, said = self._ask("ack", body)
        assert (status == OK) == ("code" not in said), said
        return str(said.get("code", ""))

    def _consume(self, ids: dict[str, Any]) -> int:
        asked: dict[str, Any] = {"start": "Earliest", "timeout_seconds": 0.1, **ids}
        if self._told:
            asked["next_offsets"] = {str(at): to for at, to in self.next_offsets.items()}
        status, said = self._ask("consume", asked)
        if status == OK:
            self._told = said
            self.next_offsets = {
                at: to for at, to in self.next_offsets.items() if at in self.assigned
            }
            for each in said["messages"]:
                partition = each["partition_id"]
                self._ledger.note(self.name, partition, int(b64decode(each["payload"])))
                self.next_offsets[partition] = each["offset"] + 1
        return status

    def _ask(self, what: str, body: dict[str, Any]) -> Answer:
        connection = http.client.HTTPConnection(self._address, timeout=DEADLINE_SECONDS)
        try:
            connection.request(
                "POST",
                f"/v1/api/topics/{what}",
                json.dumps({**self._names, **body}).encode(),
                {"Content-Type": "application/json"},
            )
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()
