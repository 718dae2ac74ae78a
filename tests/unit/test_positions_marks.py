"""Who made a commit."""

from __future__ import annotations

import pytest

from duolog.bridge.kafka.positions.marks import Author, KafkaCommit, commit_of, mark

LOG = "0b9f2f60c2d84a2e"
OTHER = "ffffffffffffffff"


def test_our_own_commit_is_known_by_its_mark() -> None:
    assert commit_of(17, mark(LOG, "n1", 17), LOG) == KafkaCommit(17, Author.OURS, "n1")


@pytest.mark.parametrize("metadata", [
    None,
    "",
    mark(LOG, "n1", 16),  # a consumer that sends back the metadata which it was told
    mark(OTHER, "n1", 17),  # another log, such as the one that this is a copy of
])  # fmt: skip
def test_a_consumer_has_made_it(metadata: str | None) -> None:
    assert commit_of(17, metadata, LOG) == KafkaCommit(17)


@pytest.mark.parametrize(
    "metadata", ["AgAAAZ", "duolog", "duolog a b", "a b c d", "duolog a b 1 2"]
)
def test_an_application_keeps_its_own_words_there(metadata: str) -> None:
    assert commit_of(17, metadata, LOG) == KafkaCommit(17, Author.ONE_WAY)
