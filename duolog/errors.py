"""Everything Duolog raises on purpose.

    DuologError
    ├── InvalidRequest            what was asked cannot be right, whatever the state of the log
    │   ├── InvalidName             topic, alias, group, table or writer name
    │   ├── InvalidSetting          zero partitions, negative retention, an unknown format …
    │   ├── InvalidRecord           a record that no topic would take
    │   │   ├── RecordTooLarge
    │   │   └── InvalidTimestamp        too far ahead of the log's clock, or before 1970
    │   ├── InvalidRows             rows that do not fit the table's routes
    │   │   ├── AmbiguousKey            the key columns do not tell a table's rows apart
    │   │   └── VersionCut              a table's version came in two writes, or comes again
    │   ├── InvalidFilter           a route's filter; points at the word
    │   ├── InvalidSql              a statement; points at the word
    │   ├── TooManyHeaders          of a record, or of all that a request publishes
    │   ├── TooManyValues           JSON of more values than a host parses for one request
    │   ├── RequestTooLarge         would take more memory than a host gives to all large requests
    │   └── InvalidSchema           an Avro schema that cannot be used
    ├── NotFound
    │   ├── UnknownTopic
    │   │   └── ForbiddenTopic          not one of a token's, whether it is there or not
    │   ├── UnknownPartition
    │   ├── UnknownGroup
    │   │   └── ForbiddenGroup          not one of a token's, whether it is there or not
    │   ├── UnknownRoute
    │   ├── UnknownSubject
    │   ├── UnknownSchema           no schema has this id or version
    │   └── NothingToAudit          no topic of the log has a mirror in Kafka
    ├── Conflict                  right in itself, but not in this state
    │   ├── NameTaken               topic or alias
    │   ├── RouteTaken              a second route for one table and operation
    │   ├── PositionChanged         compare-and-set of a group position lost the race
    │   ├── AckBeyondHead           acknowledged what was never written
    │   ├── IncompatibleSchema      breaks what the subject promises; names the field
    │   ├── TopicRecreated          the topic has another id than was named: it was made again
    │   ├── StagedForOtherTopic     a part was staged for a topic that was dropped or grown
    │   ├── PartitionHeld           another consumer of the group is being answered
    │   ├── NotSettled              acknowledged in the log, and not in Kafka within the time given
    │   ├── MembershipOver          a consumer's place in its group is not what it thinks
    │   │   ├── StaleGeneration         its partitions have changed: it asks which it has now
    │   │   └── UnknownMember           its session is over, or the host was started anew
    │   ├── PartitionRevoked        acknowledged what another member of the group has now
    │   ├── IncompatibleGroup       a group's members in Kafka share out partitions in another way
    │   ├── GroupHasMembers         a group that has members is not moved by others
    │   ├── TooManyStoredGroups     a new group, where the log has as many as it takes
    │   ├── MirrorChanged           compare-and-set of a mirror lost the race: another worker
    │   ├── MirrorDetached          a mirror does not begin again until somebody says so
    │   ├── NothingDamaged          only damaged batches are skipped, and there is none
    │   └── PortTaken               nothing can listen there now
    ├── OffsetOutOfRange          carries the earliest and the latest offset
    ├── RecordsLost               what a reader had still to read is gone
    ├── WriterFault               what a writer sends does not continue what it sent
    │   ├── EpochTooOld
    │   ├── EpochGap
    │   ├── EpochContentMismatch
    │   ├── SequenceTooOld
    │   ├── SequenceGap             in order: sequences before it were never published
    │   ├── SequenceOutOfOrder      in order: later ones were published before it
    │   └── SequenceContentMismatch
    ├── LogUnusable               this directory cannot be used as a log, now or at all
    │   ├── LogNotFound
    │   ├── LogBusy                 another process owns it
    │   ├── UnsupportedLocation     network file systems, object stores
    │   ├── UnsupportedFormat       written by a newer Duolog, or not a log
    │   ├── DamagedLog              what was once durable is not there as it was
    │   │   └── DamagedBatch            one stored batch; carries its offsets, and can be skipped
    │   ├── NotABackup              the source of a restore is none, or an unfinished one
    │   ├── FolderNotEmpty          a backup or a restored log needs a place of its own
    │   ├── RestoreUnfinished       a restore into this directory has not come to its end
    │   ├── TooManyOpenFiles        this process may open no more files; nothing is damaged
    │   ├── LogMoved                its folder was moved, removed or replaced while it was open
    │   ├── LogForked               it belongs to the process that this one was forked from
    │   └── LogClosed
    ├── Undecodable               bytes that are not what their schema says
    ├── RegistryFault             a schema registry
    │   ├── RegistryRefused         it answered no; carries its status and error code
    │   └── RegistryUnreachable     it did not answer
    ├── HostFault                 the host of a log, on this machine or behind a url
    │   ├── HostUnreachable         nobody answered in time
    │   ├── HostRefused             it does not know who asks
    │   ├── HostMismatch            another log, or no host of Duolog at all, answers there
    │   └── HostFailed              it failed in a way that it has no name for
    ├── DamagedPart               a staged part is not what its task wrote
    ├── WritesRefused             reads go on; carries when a retry makes sense
    │   ├── DiskFull                too little space; nothing of it was kept
    │   ├── NotWritten              the disk failed; nothing of it was kept
    │   └── OutcomeUnknown          the write may or may not be there: send it again
    ├── QueryStopped              a SELECT did not come to its end
    │   ├── QueryFailed             over a value: a division by zero, a text that is no number
    │   ├── QueryTimedOut
    │   ├── QueryTooLarge           it needs more memory than it may have
    │   ├── AnswerTooLarge          its answer has more rows or bytes than are sent
    │   └── QueryProcessDied        the process that ran it ended, and nobody knows why
    ├── OutputFailed              the command line cannot write its output
    ├── ToolMissing               another program that is needed here
    │   ├── JavaNotFound
    │   ├── JavaTooOld
    │   ├── PySparkNotFound         its Ivy fetches jars
    │   ├── RocksDBNotFound         an embedded log lies in it
    │   └── DataFusionNotFound      it answers SELECT
    ├── KafkaFault                a Kafka cluster that a log is mirrored into
    │   ├── KafkaUnreachable        no broker answered in time
    │   │   ├── KafkaUntrusted          TLS failed: a certificate, a host name, no TLS there at all
    │   │   └── KafkaTokenUnavailable   whoever gives tokens gives none
    │   ├── KafkaUnsupported        it does not know a request that the mirror needs
    │   ├── KafkaWorkerUnavailable  the host's Kafka worker does not run, or does not answer in time
    │   ├── KafkaFeedForbidden      commits of groups may not be watched; they can be asked for
    │   ├── KafkaOffsetsHaveGaps    a log that is restored from there could not have the same
    │   ├── InvalidToken            what was given is no token, or one that has ended
    │   └── KafkaRefused            it said no; the message has its own words
    │       └── KafkaLoginRefused       it does not know who comes, or not this password or token
    ├── MirrorHalted              a mirror stands still until somebody decides what to do
    │   ├── CopiesInKafka           somebody else writes the log's records into its Kafka topic
    │   ├── KafkaTopicMissing       the Kafka topic was deleted
    │   ├── KafkaTopicRecreated     it was deleted and made again
    │   ├── KafkaTopicUnfit         its partitions or settings cannot hold what the log's topic has
    │   ├── MirrorDiverged          Kafka holds other records than were sent
    │   ├── MirrorOfCopy            another log, of which this one is a copy, has this mirror
    │   ├── MirrorRefused           the cluster does not let the mirror write
    │   ├── RecordsRefused          records that Kafka does not take, and the mirror is not to skip
    │   └── MirrorMeetsDamage       the log cannot decode the batch that is to be copied next
    ├── DownloadFailed            jars could not be fetched; ends with what was said about it
    ├── LocalKafkaFailed          a broker on this machine did not start; ends with its log
    ├── DemoFailed                a process of the demo ended, or showed something wrong
    ├── AttemptsExhausted         a record failed as often as it may, and nobody takes it over
    ├── ClientClosed              a consumer or publisher was used after it was closed
    ├── TooBusy                   a host has more to do than it takes on; nothing was done
    │   ├── TooManyMembers          of one group, of the host, or in groups of Kafka
    │   ├── TooManyGroups           that have members
    │   └── TokenLimitReached       one token has as many members or groups as one may have
    └── Cancelled                 a long operation was told to stop

Each message says what happened, to what, and what to do.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "AckBeyondHead",
    "AmbiguousKey",
    "AnswerTooLarge",
    "AttemptsExhausted",
    "Cancelled",
    "ClientClosed",
    "Conflict",
    "CopiesInKafka",
    "DataFusionNotFound",
    "DamagedBatch",
    "DamagedLog",
    "DamagedPart",
    "DemoFailed",
    "DiskFull",
    "DownloadFailed",
    "DuologError",
    "EpochContentMismatch",
    "EpochGap",
    "EpochTooOld",
    "FolderNotEmpty",
    "ForbiddenGroup",
    "ForbiddenTopic",
    "GroupHasMembers",
    "HostFailed",
    "HostFault",
    "HostMismatch",
    "HostRefused",
    "HostUnreachable",
    "IncompatibleGroup",
    "IncompatibleSchema",
    "InvalidFilter",
    "InvalidName",
    "InvalidRecord",
    "InvalidRequest",
    "InvalidRows",
    "InvalidSchema",
    "InvalidSetting",
    "InvalidSql",
    "InvalidTimestamp",
    "InvalidToken",
    "JavaNotFound",
    "JavaTooOld",
    "KafkaFault",
    "KafkaFeedForbidden",
    "KafkaOffsetsHaveGaps",
    "KafkaLoginRefused",
    "KafkaRefused",
    "KafkaTokenUnavailable",
    "KafkaTopicMissing",
    "KafkaTopicRecreated",
    "KafkaTopicUnfit",
    "KafkaUnreachable",
    "KafkaUnsupported",
    "KafkaUntrusted",
    "KafkaWorkerUnavailable",
    "LocalKafkaFailed",
    "LogBusy",
    "LogClosed",
    "LogForked",
    "LogMoved",
    "LogNotFound",
    "LogUnusable",
    "MembershipOver",
    "MirrorChanged",
    "MirrorDetached",
    "MirrorDiverged",
    "MirrorHalted",
    "MirrorMeetsDamage",
    "MirrorOfCopy",
    "MirrorRefused",
    "NameTaken",
    "NotABackup",
    "NotFound",
    "NotSettled",
    "NotWritten",
    "NothingDamaged",
    "NothingToAudit",
    "OffsetOutOfRange",
    "OutcomeUnknown",
    "OutputFailed",
    "PartitionHeld",
    "PartitionRevoked",
    "PortTaken",
    "PositionChanged",
    "PySparkNotFound",
    "QueryFailed",
    "QueryProcessDied",
    "QueryStopped",
    "QueryTimedOut",
    "QueryTooLarge",
    "RecordTooLarge",
    "RecordsLost",
    "RecordsRefused",
    "RegistryFault",
    "RegistryRefused",
    "RegistryUnreachable",
    "RestoreUnfinished",
    "RocksDBNotFound",
    "RouteTaken",
    "RequestTooLarge",
    "SequenceContentMismatch",
    "SequenceGap",
    "SequenceOutOfOrder",
    "SequenceTooOld",
    "StagedForOtherTopic",
    "StaleGeneration",
    "TokenLimitReached",
    "TooBusy",
    "TooManyGroups",
    "TooManyHeaders",
    "TooManyMembers",
    "TooManyOpenFiles",
    "TooManyStoredGroups",
    "TooManyValues",
    "ToolMissing",
    "TopicRecreated",
    "Undecodable",
    "UnknownGroup",
    "UnknownMember",
    "UnknownPartition",
    "UnknownRoute",
    "UnknownSchema",
    "UnknownSubject",
    "UnknownTopic",
    "UnsupportedFormat",
    "UnsupportedLocation",
    "VersionCut",
    "WriterFault",
    "WritesRefused",
]


class DuologError(Exception):
    """The root. `code` is the error's stable name on every wire and in `--json` output."""

    code: ClassVar[str] = "DuologError"

    def __init_subclass__(cls) -> None:
        cls.code = cls.__name__


class InvalidRequest(DuologError):
    """What was asked cannot be right, whatever the state of the log."""


class InvalidName(InvalidRequest):
    """A topic, alias, group, table or writer name that is not allowed."""


class InvalidSetting(InvalidRequest):
    """A number or a word outside what a setting takes."""


class InvalidRecord(InvalidRequest):
    """A record that no topic would take."""


class RecordTooLarge(InvalidRecord):
    """Key, value, headers and table are beyond the size limit."""


class InvalidTimestamp(InvalidRecord):
    """A record's time is before 1970, or further ahead of the log's clock than it may be."""


class InvalidRows(InvalidRequest):
    """Rows that do not fit: a column is missing, of another type, or null where a key is needed."""


class AmbiguousKey(InvalidRows):
    """The key columns do not tell a table's rows apart."""


class VersionCut(InvalidRows):
    """A version of a table came in two writes, so its changes cannot be told; or it comes again."""


class InvalidFilter(InvalidRequest):
    """A route's filter that cannot be used. `position` is where in `text` the trouble starts."""

    def __init__(self, reason: str, *, text: str = "", position: int | None = None) -> None:
        self.reason = reason
        self.text = text
        self.position = position
        super().__init__(reason if position is None else f"{reason}\n{pointer(text, position)}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_filter_error, (self.reason, self.text, self.position)


def pointer(text: str, position: int) -> str:
    """The line of `text` that holds `position`, with a caret below the place."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start : end if end >= 0 else len(text)]
    return f"  {line}\n  {' ' * (position - start)}^"


def _rebuild_filter_error(reason: str, text: str, position: int | None) -> InvalidFilter:
    return InvalidFilter(reason, text=text, position=position)


class InvalidSql(InvalidRequest):
    """A statement that cannot be used. `position` is where in `text` the trouble starts."""

    def __init__(self, reason: str, *, text: str = "", position: int | None = None) -> None:
        self.reason = reason
        self.text = text
        self.position = position
        super().__init__(reason if position is None else f"{reason}\n{pointer(text, position)}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_sql_error, (self.reason, self.text, self.position)


def _rebuild_sql_error(reason: str, text: str, position: int | None) -> InvalidSql:
    return InvalidSql(reason, text=text, position=position)


class InvalidSchema(InvalidRequest):
    """A schema that is not valid Avro, or beyond what is read."""


class TooManyHeaders(InvalidRequest):
    """A record, or all records of a request together, have more headers than a host takes."""


class TooManyValues(InvalidRequest):
    """A request's JSON has more values, in all or in one of its records, than a host parses."""


class RequestTooLarge(InvalidRequest):
    """To work on a request would take more memory than a host gives to all large ones together."""


class NotFound(DuologError):
    """What was named is not there."""


class UnknownTopic(NotFound):
    """No topic has this name, alias or id."""


class ForbiddenTopic(UnknownTopic):
    """The caller is limited to other topics, and learns nothing of this one."""


class NothingToAudit(NotFound):
    """No topic of the log has a mirror in Kafka."""


class UnknownPartition(NotFound):
    """The topic has fewer partitions."""


class UnknownGroup(NotFound):
    """The group has no position here."""


class ForbiddenGroup(UnknownGroup):
    """The caller is limited to other groups, and learns nothing of this one."""


class UnknownRoute(NotFound):
    """The topic has no route for this table and operation."""


class UnknownSubject(NotFound):
    """The registry has no such subject."""


class UnknownSchema(NotFound):
    """The registry has no schema of this id, or the subject no such version."""


class Conflict(DuologError):
    """Right in itself, but not in this state."""


class NameTaken(Conflict):
    """Another topic has this name or alias."""


class RouteTaken(Conflict):
    """The topic already has a route for this table and operation."""


class PositionChanged(Conflict):
    """Somebody else moved the group's position first."""


class AckBeyondHead(Conflict):
    """An acknowledgement of an offset that was never written."""


class IncompatibleSchema(Conflict):
    """A schema that breaks what its subject promises to those who read or wrote before.

    The message names both versions and the field.
    """


class StagedForOtherTopic(Conflict):
    """A part was staged for a topic that was dropped or got more partitions since."""


class PartitionHeld(Conflict):
    """Another consumer of the group is being answered from this partition. `holder` says who."""

    def __init__(self, message: str, *, holder: str = "") -> None:
        self.holder = holder
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_partition_held, (str(self), self.holder)


class TopicRecreated(Conflict):
    """The topic was dropped and made again since its id was learned: its offsets are others.

    `topic_id` is the id that it has now.
    """

    def __init__(self, message: str, *, topic: str = "", topic_id: int | None = None) -> None:
        self.topic = topic
        self.topic_id = topic_id
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_topic_recreated, (str(self), self.topic, self.topic_id)


def _rebuild_topic_recreated(message: str, topic: str, topic_id: int | None) -> TopicRecreated:
    return TopicRecreated(message, topic=topic, topic_id=topic_id)


class MembershipOver(Conflict):
    """A consumer's place in its group is not what it thinks. Consume again with the member_id alone
    to be told.
    """


class StaleGeneration(MembershipOver):
    """The member's partitions have changed since it was told which they are."""


class UnknownMember(MembershipOver):
    """The group has no such member: its session is over, or the host was started anew."""


class PartitionRevoked(Conflict):
    """An acknowledgement of a partition that another member of the group has now. It is read again
    there, from the last acknowledgement that was taken.
    """


class IncompatibleGroup(Conflict):
    """A native consumer cannot join: how the group's members in Kafka share out partitions is not
    known here.
    """


class MirrorChanged(Conflict):
    """Another worker has changed a mirror since it was read."""


class NothingDamaged(Conflict):
    """Only damaged batches are skipped, and there is none before the offset."""


class MirrorDetached(Conflict):
    """A mirror that was detached does not begin again until somebody says so."""


def _rebuild_partition_held(message: str, holder: str) -> PartitionHeld:
    return PartitionHeld(message, holder=holder)


class NotSettled(Conflict):
    """A group is acknowledged in the log, and Kafka's side is not there yet. Wait again."""


class GroupHasMembers(Conflict):
    """A group's position cannot be set while consumers are members of it, here or in Kafka."""


class TooManyStoredGroups(Conflict):
    """A log has as many groups with positions as it takes; asking again does not help by itself."""


class PortTaken(Conflict):
    """Nothing can listen on the port: another program does, or it is not allowed."""


class OffsetOutOfRange(DuologError):
    """The offset is not kept. `earliest` is the first kept, `latest` the one written next."""

    def __init__(
        self, *, topic: str, partition: int, offset: int, earliest: int, latest: int
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.earliest = earliest
        self.latest = latest
        super().__init__(
            f"Offset {offset} of topic '{topic}' partition {partition} is not there: it keeps "
            f"{earliest} up to but not including {latest}. Start from one of these, or from "
            "earliest or latest."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_out_of_range, (
            self.topic,
            self.partition,
            self.offset,
            self.earliest,
            self.latest,
        )


def _rebuild_out_of_range(
    topic: str, partition: int, offset: int, earliest: int, latest: int
) -> OffsetOutOfRange:
    return OffsetOutOfRange(
        topic=topic, partition=partition, offset=offset, earliest=earliest, latest=latest
    )


class RecordsLost(DuologError):
    """What a reader had still to read was removed, or its topic was."""


class WriterFault(DuologError):
    """What a writer sends does not continue what it sent before."""


class EpochTooOld(WriterFault):
    """The writer has committed a later epoch."""


class EpochGap(WriterFault):
    """A stream's epoch does not follow its last one."""


class EpochContentMismatch(WriterFault):
    """The same epoch again, with other content."""


class SequenceTooOld(WriterFault):
    """A publisher's sequence lies so far back that nothing is remembered of it."""


class SequenceGap(WriterFault):
    """A publisher that publishes in order has left out sequences."""


class SequenceOutOfOrder(WriterFault):
    """A publisher that publishes in order comes with a sequence that it passed over before."""


class SequenceContentMismatch(WriterFault):
    """The same publisher's sequence again, with another record."""


class LogUnusable(DuologError):
    """This directory cannot be used as a log, now or at all."""


class LogNotFound(LogUnusable):
    """There is no log in this directory."""


class LogBusy(LogUnusable):
    """Another process owns the log."""


class UnsupportedLocation(LogUnusable):
    """A place whose locks or files do not work the way a log needs."""


class UnsupportedFormat(LogUnusable):
    """A log of a newer format, or something that is no log."""


class DamagedLog(LogUnusable):
    """What was once durable is not there as it was."""


class DamagedBatch(DamagedLog):
    """One stored batch cannot be decoded, or is not there. Its records have the offsets from
    `first_offset` on, up to but not including `next_offset`; all others can be read.
    """

    def __init__(
        self, *, topic: str, partition: int, first_offset: int, next_offset: int, reason: str
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.first_offset = first_offset
        self.next_offset = next_offset
        self.reason = reason
        super().__init__(
            f"Topic '{topic}' partition {partition} has a damaged batch at offsets {first_offset}-"
            f"{next_offset - 1}: {reason} Restore the log from a backup; or read on behind it, "
            f"from offset {next_offset} or with the option to skip damage; or give its records up "
            f"for all readers: `duolog topic skip {topic} --partition {partition} "
            f"--to {next_offset}`."
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_damaged_batch, (
            self.topic,
            self.partition,
            self.first_offset,
            self.next_offset,
            self.reason,
        )


def _rebuild_damaged_batch(
    topic: str, partition: int, first_offset: int, next_offset: int, reason: str
) -> DamagedBatch:
    return DamagedBatch(
        topic=topic,
        partition=partition,
        first_offset=first_offset,
        next_offset=next_offset,
        reason=reason,
    )


class NotABackup(LogUnusable):
    """What is to be restored is no backup, or one that was not finished."""


class FolderNotEmpty(LogUnusable):
    """A backup or a restored log needs a folder of its own."""


class RestoreUnfinished(LogUnusable):
    """A restore into this directory has not come to its end."""


class TooManyOpenFiles(LogUnusable):
    """The process may open no more files. Nothing is damaged; it works again when it may."""


class LogMoved(LogUnusable):
    """The folder that this process has opened is not at its path any more: nothing is written."""


class LogForked(LogUnusable):
    """The log was opened by the process that this one was forked from, and belongs to it."""


class LogClosed(LogUnusable):
    """The log was used after it had been closed."""


class Undecodable(DuologError):
    """Bytes that are not what their schema says. The message names the row and the field."""


class RegistryFault(DuologError):
    """A schema registry could not do what was asked."""


class RegistryRefused(RegistryFault):
    """The registry answered no. `status` and `error_code` are its own."""

    def __init__(self, message: str, *, status: int, error_code: int) -> None:
        self.status = status
        self.error_code = error_code
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_registry_refused, (str(self), self.status, self.error_code)


def _rebuild_registry_refused(message: str, status: int, error_code: int) -> RegistryRefused:
    return RegistryRefused(message, status=status, error_code=error_code)


class RegistryUnreachable(RegistryFault):
    """The registry did not answer."""


class HostFault(DuologError):
    """The host of a log could not do what was asked."""


class HostUnreachable(HostFault):
    """The host did not answer in time. The message says for how long it was tried."""


class HostRefused(HostFault):
    """The host does not know who asks, or does not let them."""


class HostMismatch(HostFault):
    """What answers is not the log that was meant, or no host of Duolog."""


class HostFailed(HostFault):
    """The host failed in a way that has no name of its own; its log says more."""


class DamagedPart(DuologError):
    """A staged part is not what its task wrote."""


class WritesRefused(DuologError):
    """Writes are refused for now; reads go on."""


class DiskFull(WritesRefused):
    """Too little space is left on the disk."""


class NotWritten(WritesRefused):
    """The disk refused a write, and nothing of it was kept."""


class OutcomeUnknown(WritesRefused):
    """A write failed half-way: it may or may not be there. Sending it again settles it."""


class QueryStopped(DuologError):
    """A SELECT did not come to its end."""


class QueryFailed(QueryStopped):
    """It met a value that it cannot calculate with."""


class QueryTimedOut(QueryStopped):
    """It took longer than it may."""


class QueryTooLarge(QueryStopped):
    """It needs more memory than it may have."""


class AnswerTooLarge(QueryStopped):
    """It answers with more rows or bytes than are sent at once."""


class QueryProcessDied(QueryStopped):
    """The process that ran it ended before it was through. It may be sent again."""


class OutputFailed(DuologError):
    """The command line cannot write its output; what it has done stays done."""


class ToolMissing(DuologError):
    """Another program that is needed is not on this machine."""


class JavaNotFound(ToolMissing):
    """There is no Java, or none that runs."""


class JavaTooOld(ToolMissing):
    """This Java is older than what is to run on it."""


class PySparkNotFound(ToolMissing):
    """There is no PySpark, whose Ivy fetches jars."""


class DataFusionNotFound(ToolMissing):
    """There is no DataFusion, which answers SELECT."""


class RocksDBNotFound(ToolMissing):
    """There is no rocksdict, which opens the log's RocksDB."""


class KafkaFault(DuologError):
    """A Kafka cluster could not do what was asked."""


class KafkaUnreachable(KafkaFault):
    """No broker answered in time. The message says for how long it was tried."""


class KafkaUntrusted(KafkaUnreachable):
    """No TLS connection: one side does not trust the other's certificate, or one speaks no TLS."""


class KafkaTokenUnavailable(KafkaUnreachable):
    """There is no token to log in with: its provider failed, or does not answer."""


class InvalidToken(KafkaFault):
    """What a token provider answered is no token, or one that has ended."""


class KafkaWorkerUnavailable(KafkaFault):
    """The host's Kafka worker does not run, has ended, or did not answer in time."""


class KafkaUnsupported(KafkaFault):
    """The broker does not know a request that the mirror needs."""


class KafkaFeedForbidden(KafkaFault):
    """The commits of groups may not be read as they are made."""


class KafkaOffsetsHaveGaps(KafkaFault):
    """Kafka's offsets are not one after the other, as those of a log are."""


class KafkaRefused(KafkaFault):
    """Kafka answered no. `error` is its number for it."""

    def __init__(self, message: str, *, error: int) -> None:
        self.error = error
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_kafka_refused, (str(self), self.error)


def _rebuild_kafka_refused(message: str, error: int) -> KafkaRefused:
    return KafkaRefused(message, error=error)


class KafkaLoginRefused(KafkaRefused):
    """Kafka does not let us in: it does not know the user, or not this password or token."""

    def __init__(self, message: str) -> None:
        super().__init__(message, error=58)  # Kafka's number for it

    def __reduce__(self) -> tuple[object, ...]:
        return KafkaLoginRefused, (str(self),)


class MirrorHalted(DuologError):
    """A mirror stands still until somebody decides what is to become of it."""


class CopiesInKafka(MirrorHalted):
    """Somebody else writes the log's records into the Kafka topic of its mirror."""


class KafkaTopicMissing(MirrorHalted):
    """The Kafka topic of a mirror was deleted."""


class KafkaTopicRecreated(MirrorHalted):
    """The Kafka topic of a mirror was deleted and made again."""


class KafkaTopicUnfit(MirrorHalted):
    """A Kafka topic whose partitions or settings cannot hold what the log's topic has."""


class MirrorDiverged(MirrorHalted):
    """Kafka holds other records than the mirror has sent."""


class MirrorOfCopy(MirrorHalted):
    """The mirror belongs to another log, of which this one is a copy."""


class MirrorRefused(MirrorHalted):
    """The cluster does not let the mirror write."""


class RecordsRefused(MirrorHalted):
    """Records that Kafka does not take, and that the mirror is not to skip."""


class MirrorMeetsDamage(MirrorHalted):
    """The log cannot decode the batch that is to be copied next."""


class DownloadFailed(DuologError):
    """Jars could not be fetched. The message ends with what was said about it."""


class LocalKafkaFailed(DuologError):
    """A broker on this machine did not start, or ended by itself. Ends with its last log lines."""


class DemoFailed(DuologError):
    """A process of the demo ended by itself, or what it showed does not add up."""


class AttemptsExhausted(DuologError):
    """A record failed as often as a consumer lets it, and there is no topic for dead letters."""


class ClientClosed(DuologError):
    """A consumer, publisher or admin was used after it was closed, or in a forked process."""


class TooBusy(DuologError):
    """A host has more to do than it takes on. Nothing was done; try again a little later."""


class TooManyMembers(TooBusy):
    """A group, the host or its Kafka worker has as many members as it takes."""


class TooManyGroups(TooBusy):
    """The host has as many groups with members as it takes."""


class TokenLimitReached(TooBusy):
    """One token has as many members of groups, or is in as many groups, as it may."""


class Cancelled(DuologError):
    """A long operation was told to stop."""
