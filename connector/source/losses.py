"""What a stream had still to read, or would read next, and is not there any more. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from duolog.connector.source.choice import Kept, Place
from duolog.connector.source.offset import StreamOffset

WAY_OUT: Final = (
    "Set option failOnDataLoss to false to go on with what is there, or start with a new "
    "checkpoint."
)


def losses(seen: StreamOffset, log_id: str, places: Mapping[Place, Kept]) -> list[str]:
    """A sentence for each thing that is gone."""
    if seen.log_id != log_id:
        return [
            f"The checkpoint is of log {seen.log_id}, and this is log {log_id}: a copy or a "
            "restored backup may have other records at the same offsets"
        ]
    now = {(place.topic, place.partition): place for place in places}
    found = []
    for place, position in seen.positions.items():
        kept = places.get(place)
        if kept is None:
            found.append(_gone(place, now.get((place.topic, place.partition))))
        elif position < kept.earliest:
            found.append(
                f"Offsets {position} to {kept.earliest - 1} of {place} were removed by retention "
                "before they were read"
            )
        elif position > kept.latest:
            found.append(
                f"The stream has read {place} up to {position}, and the log ends at {kept.latest}"
            )
    for place, kept in places.items():
        if place not in seen.positions and kept.earliest > 0:
            found.append(
                f"New {place} begins with offset {kept.earliest}: what was before it was removed "
                "before it was read"
            )
    return found


def _gone(place: Place, successor: Place | None) -> str:
    if successor is not None:
        return f"Topic '{place.topic}' was dropped and made again since it was read last"
    return f"The {place} is gone, or is not among what is to be read any more"
