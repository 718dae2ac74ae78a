"""What requests and answers hold. The description of the API is made from these."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from duolog.bridge.http.starts import SCHEMA, Begin, begin_of
from duolog.log.model import DEFAULT_START, Record

MOST_RECORDS: Final = 1_000_000
MOST_BYTES: Final = 64 << 20
MOST_MESSAGES: Final = 10_000
_MOST_FIELDS: Final = 50
_LAST: Final = 2**63 - 1
_ID_DIGITS: Final = 10

Offset = Annotated[int, Field(ge=0, le=_LAST)]
Partition = Annotated[int, Field(ge=0, le=65_535)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Member = Annotated[str, Field(min_length=1, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
PartitionName = Annotated[str, Field(pattern="^(0|[1-9][0-9]{0,4})$")]
Reference = Annotated[
    Name | Annotated[int, Field(ge=0, le=2**32 - 1)],
    Field(description="A topic's name, alias or id."),
]


class Request(BaseModel):
    """Validation holds up everybody, so what is wrong a hundred thousand times is told once."""

    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _is_no_flood(cls, found: Any) -> Any:
        if isinstance(found, dict) and len(found) > _MOST_FIELDS:
            raise ValueError("has more fields than there are")
        return found


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MayNameTopic(Request):
    """A topic by its name, by its id, or by both: then it has to be the one of this id."""

    topic: Reference | None = Field(None, description="Its name, alias or id. Or use topic_id.")
    topic_id: Reference | None = Field(
        None,
        description="Alone, another spelling of topic. Beside topic, the id that an answer gave: "
        "TopicRecreated when the topic was dropped and made again.",
    )

    @model_validator(mode="after")
    def _names_an_id(self) -> Self:
        beside = self.topic is not None and isinstance(self.topic_id, str)
        if beside and not _is_id(str(self.topic_id)):
            raise ValueError("topic_id beside topic is a whole number, as an answer gave it")
        return self

    @property
    def expected_id(self) -> int | None:
        """The id that the topic is to have, where it is named by both."""
        return None if self.topic is None or self.topic_id is None else int(self.topic_id)

    @property
    def reference(self) -> str | int:
        """What the topic is called, where one is named."""
        found = self.topic_id if self.topic is None else self.topic
        assert found is not None  # noqa: S101 - validators see to it
        return found


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _ID_DIGITS


class OfTopic(MayNameTopic):
    @model_validator(mode="after")
    def _names_one_topic(self) -> Self:
        if self.topic is None and self.topic_id is None:
            raise ValueError("name the topic, by topic or by topic_id")
        return self


class ConsumeRequest(OfTopic):
    """What to read, and how long to wait for it."""

    group_id: Name | None = None
    start: Annotated[
        Begin, BeforeValidator(begin_of), WithJsonSchema(SCHEMA), PlainSerializer(str)
    ] = DEFAULT_START
    limit: int = Field(100, ge=1, le=MOST_RECORDS)
    max_bytes: int = Field(8 << 20, ge=1, le=MOST_BYTES, description="Of keys and values.")
    partition_id: Partition | None = Field(None, description="All partitions when left out.")
    timeout_seconds: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="How long to wait when there is nothing; more than the cap is the cap.",
    )
    on_damage: Literal["fail", "skip"] = Field(
        "fail",
        description="At a batch that cannot be decoded: DamagedBatch, or go on behind it.",
    )
    member_id: Member | None = Field(
        None,
        description="Of a member of the group, as an answer gave it. Without generation: join "
        "again, and be told which partitions it has.",
    )
    generation: Offset | None = Field(None, description="As an answer gave it, with member_id.")
    session_timeout_seconds: float | None = Field(
        None,
        ge=1,
        le=300,
        allow_inf_nan=False,
        description="Join the group as a member that is gone when it is not heard of for so long; "
        "10 when only member_id is given.",
    )
    next_offsets: Annotated[dict[PartitionName, Offset], Field(max_length=65_536)] | None = Field(
        None,
        description="Of a member: where it goes on in partitions that it has had since it was "
        "told, instead of where the group is.",
    )

    @model_validator(mode="after")
    def _is_no_half_member(self) -> Self:
        joins = self.member_id is not None or self.session_timeout_seconds is not None
        if joins and (self.group_id is None or self.partition_id is not None):
            raise ValueError("a member names its group and no partition: it is told which it has")
        if self.generation is not None and self.member_id is None:
            raise ValueError("generation belongs to member_id")
        if self.next_offsets is not None and self.member_id is None:
            raise ValueError("next_offsets belongs to member_id")
        return self


class Header(Answer):
    """A header of a record. `value` is text; one that is not comes as `value_base64`."""

    name: str
    value: str | None
    value_base64: str | None = None


class Message(Answer):
    """A record. `key` is text; one that is not comes as `key_base64`."""

    topic: str
    topic_id: int = Field(description="Of this topic, and of no other one of its name.")
    partition_id: int
    offset: int
    message_id: str = Field(description="topic_id:partition:offset")
    key: str | None
    key_base64: str | None = None
    payload: str | None = Field(description="Base64; null for none, as after a delete.")
    op: str | None = Field(description="insert, update, delete or read; null for no change.")
    ts: int = Field(description="Milliseconds since 1970.")
    payload_mode: str | None
    source_table: str | None
    headers: list[Header]


class DamagedRange(Answer):
    """A batch that cannot be decoded: no records come from there."""

    partition_id: int
    first_offset: int
    next_offset: int = Field(description="The first one behind it.")
    reason: str


class LeftOutRange(DamagedRange):
    """Offsets that were passed over."""

    damaged: bool = Field(description="False where it was skipped in the log, for all readers.")


class ConsumeAnswer(Answer):
    """Records, and where to go on."""

    messages: list[Message]
    topic_id: int = Field(description="For the next calls, beside topic.")
    next_offset: int | None = Field(
        description="Where to go on, when one partition was read and gave something."
    )
    next_offsets: dict[str, int] = Field(
        description="Where each partition goes on; may be given as start."
    )
    has_more: bool
    unsettled: str | None = Field(
        None, description="Why the group may be elsewhere in Kafka, if that did not say in time."
    )
    left_out: list[LeftOutRange] | None = Field(
        None, description="Offsets that were passed over, if there were some."
    )
    damaged: list[DamagedRange] | None = Field(
        None, description="Where partitions cannot be read on, if others gave records."
    )
    member_id: str | None = Field(
        None, description="Of a group that is read without partition_id: for the next calls."
    )
    generation: int | None = Field(None, description="With member_id, for the next calls.")
    assigned: list[int] | None = Field(None, description="The partitions that are the member's.")


class AckRequest(OfTopic):
    """Everything up to and including `upto_offset` is done."""

    group_id: Name
    upto_offset: Offset
    partition_id: Partition | None = Field(
        None, description="Needed when the topic has more than one."
    )
    wait: Literal["settled"] | None = Field(
        None, description="settled: answer when Kafka is at the same place, or the time is up."
    )
    timeout_seconds: float | None = Field(
        None, ge=0, allow_inf_nan=False, description="How long to wait; with wait."
    )
    member_id: Member | None = Field(None, description="Of a member, with generation.")
    generation: Offset | None = Field(None, description="As the last answer gave it.")

    @model_validator(mode="after")
    def _waits_for_something(self) -> Self:
        if self.timeout_seconds is not None and self.wait is None:
            raise ValueError("timeout_seconds belongs to wait")
        return self

    @model_validator(mode="after")
    def _is_no_half_member(self) -> Self:
        if (self.member_id is None) != (self.generation is None):
            raise ValueError("member_id and generation belong together")
        return self


class HeartbeatRequest(OfTopic):
    """A member is there, although it has not asked for records for a while."""

    group_id: Name
    member_id: Member
    generation: Offset


class LeaveRequest(OfTopic):
    """A member goes: others get its partitions at once."""

    group_id: Name
    member_id: Member


class MemberAnswer(Answer):
    success: bool


class AckAnswer(Answer):
    success: bool
    topic_id: int
    acknowledged_offset: int = Field(description="May be later than asked: it never goes back.")
    settled: bool | None = Field(None, description="With wait: both sides are at one place.")
    pending: str | None = Field(None, description="What is missing to that; null for nothing.")


class OffsetsRequest(OfTopic):
    pass


class PartitionRange(Answer):
    topic: str
    topic_id: int
    partition_id: int
    start_offset: int = Field(description="The first one kept.")
    next_offset: int = Field(description="The one that is written next.")
    last_offset: int | None = Field(description="Of the last record; null when none is kept.")


class OffsetsAnswer(Answer):
    offsets: list[PartitionRange]


class NewHeader(Request):
    name: Annotated[str, Field(max_length=1000)]
    value: str | None = None
    value_base64: str | None = None


class NewMessage(Request):
    """A record to publish: `value` (text, or JSON that is written compactly) or `payload`."""

    value: Any = None
    payload: str | None = Field(None, description="Base64, instead of value.")
    key: Any = Field(None, description="Text, or JSON that is written compactly.")
    key_base64: str | None = None
    headers: list[NewHeader] = Field(default_factory=list, max_length=1000, fail_fast=True)
    partition_id: Partition | None = None
    op: str | None = None
    source_table: str | None = None
    payload_mode: str | None = None
    ts: Offset | None = None


class PublishRequest(MayNameTopic):
    """Messages for a topic, or rows of a table for every topic that has a route for them."""

    messages: list[NewMessage] | None = Field(None, max_length=MOST_MESSAGES, fail_fast=True)
    table: Name | None = None
    op: str | None = Field(None, description="insert, update, delete or read.")
    rows: list[dict[str, Any]] | None = Field(None, max_length=MOST_MESSAGES, fail_fast=True)
    key_columns: list[Name] = Field(
        [], description="Which columns are the row's key.", max_length=1000, fail_fast=True
    )
    before: list[dict[str, Any] | None] | None = Field(
        None,
        description="The rows before an update or delete, one for each; null where not known.",
        max_length=MOST_MESSAGES,
        fail_fast=True,
    )
    unrouted: Literal["fail", "drop"] = Field(
        "fail", description="What becomes of rows that no route takes."
    )
    ts: Offset | None = Field(None, description="When the change was made.")
    writer: Name | None = Field(
        None, description="With sequence: safe to send again, in the same words."
    )
    sequence: Offset | None = Field(None, description="Of the first record; each has the next.")
    in_order: bool = Field(
        False, description="With sequence: 409 for one that does not follow the writer's last."
    )

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        to_topic = self.messages is not None
        named = self.topic is not None or self.topic_id is not None
        if to_topic == (self.rows is not None):
            raise ValueError("publish messages to a topic, or rows of a table")
        if to_topic and (not named or self.table is not None or self.op is not None):
            raise ValueError("messages go to one topic, named by topic or by topic_id")
        if to_topic and (self.key_columns or self.ts is not None):
            raise ValueError("key_columns and ts belong to rows; a message has its own ts")
        if to_topic and (self.before is not None or self.unrouted != "fail"):
            raise ValueError("before and unrouted belong to rows")
        if not to_topic and (named or self.table is None or self.op is None):
            raise ValueError("rows come with their table and op, and no topic: routes choose it")
        if (self.writer is None) != (self.sequence is None):
            raise ValueError("writer and sequence belong together")
        if self.in_order and self.writer is None:
            raise ValueError("in_order goes with writer and sequence")
        return self


class LargePublishRequest(PublishRequest):
    """One whose messages have become records already, and are left out."""

    _records: list[Record] = PrivateAttr(default_factory=list)

    @property
    def records(self) -> list[Record]:
        return self._records

    def take_records(self, records: list[Record]) -> None:
        self._records = records


class PlacedMessage(Answer):
    topic: str
    topic_id: int
    partition_id: int
    offset: int


class PublishAnswer(Answer):
    """Where each record lies. It is durable."""

    offsets: list[PlacedMessage]


class LastSequenceRequest(Request):
    writer: Name


class LastSequenceAnswer(Answer):
    """How far a writer has published; null for one that is not known, or was forgotten."""

    writer: str
    last_sequence: int | None


class SqlRequest(Request):
    sql: str = Field(min_length=1, description="Statements, with semicolons between.")


class SqlAnswer(Answer):
    """What one statement answers."""

    columns: list[str]
    types: list[str] = Field(description="Of the columns, as Arrow names them.")
    rows: list[list[Any]] = Field(
        description="Times are ISO 8601, decimals text, bytes text or {base64: …}."
    )


class SqlAnswers(Answer):
    """What each of several statements answers."""

    results: list[SqlAnswer]


class ErrorAnswer(BaseModel):
    """Why not. OffsetOutOfRange also has earliest and latest, PartitionHeld the holder,
    TopicRecreated the topic_id as it is now.
    """

    model_config = ConfigDict(extra="allow")

    error: str
    code: str


class WorkerHealth(Answer):
    state: str = Field(description="starting, running, waiting, stopping, stopped or given up.")
    starts: int = Field(description="How often it was started since the host was.")
    code: str | None = Field(None, description="The error that ended it, if it does not run.")


class Health(Answer):
    status: str
    writes: str | None = Field(None, description="Whether writes are taken, and why not.")
    damaged: str | None = Field(
        None, description="How many stored batches cannot be decoded, if some cannot."
    )
    workers: dict[str, WorkerHealth] | None = Field(
        None, description="The host's worker processes, if it has some."
    )
