"""Log lines of clients and brokers: what each means, and the one table of patterns that finds it.

A pattern leads to an entry here, or to an error's. The first that matches counts: a cause stands before what
only carries it.
"""

from kgroup.cli.explanations.entry import Entry, EntryKind

_MEMBERS, _BLAME = "kgroup describe GROUP --section members", "kgroup blame GROUP"
_DOCTOR, _COORDINATOR = "kgroup doctor GROUP", "kgroup coordinator GROUP"
_INSTANCES, _CLUSTER = "kgroup describe GROUP --by instance", "kgroup cluster status"
_REPLAY, _LAG = "kgroup replay-log GROUP", "kgroup lag GROUP"
_OFFSETS, _TOPICS = "kgroup describe GROUP --section offsets", "kgroup cluster topics"
_BY_TOPIC, _DESCRIBE, _CONFIG = (
    "kgroup describe GROUP --by topic",
    "kgroup describe GROUP",
    "kgroup config show",
)


def _line(name: str, meaning: str, cause: str, next_: tuple[str, ...]) -> Entry:
    return Entry(name, EntryKind.LOG_LINE, meaning, cause=cause, next=next_)


_NORMAL = "Normal when a consumer starts, stops or is deployed; a fault only if it repeats."

LOG_LINES: tuple[Entry, ...] = (
    _line(
        "poll interval exceeded",
        "The application did not poll for longer than max.poll.interval.ms, so the client left the group.",
        "Records take longer to process than the interval, or the application is blocked (a call without a "
        "timeout, a full pool). Process less per poll (max.poll.records), or raise max.poll.interval.ms.",
        (_BLAME, _MEMBERS, _LAG),
    ),
    _line(
        "session timed out",
        "The client got no answer to its heartbeats for session.timeout.ms; it gives up its partitions and "
        "joins again.",
        "The coordinator is down, moved or overloaded, the network drops packets, or the client was paused "
        "(garbage collection, no CPU).",
        (_COORDINATOR, _BLAME),
    ),
    _line(
        "member failed",
        "The coordinator had no heartbeat from the member for its session timeout and removed it; the group "
        "rebalances.",
        "The process was killed, paused or cut off. A client that is only slow to poll leaves by itself and "
        "is not removed for this.",
        (_BLAME, _MEMBERS),
    ),
    _line(
        "member left",
        "A member left the group by itself; its partitions go to the others.",
        "The consumer was closed, or did not poll within max.poll.interval.ms: the client's log says which.",
        (_BLAME, _MEMBERS),
    ),
    _line(
        "did not rejoin",
        "A rebalance went on without members that did not join again in time: the coordinator removed them.",
        "They were still processing, or gone: the rebalance timeout is their max.poll.interval.ms.",
        (_BLAME, _MEMBERS),
    ),
    _line(
        "static member left",
        "A static member left for now (epoch -2): its partitions stay its own until its session times out.",
        "A restart with group.instance.id set. Nothing consumes these partitions until it is back.",
        (_INSTANCES,),
    ),
    _line(
        "member joined",
        "A new member joined the group, which rebalances for it.",
        f"{_NORMAL} A client that joins again and again was removed or fenced before.",
        (_BLAME, _MEMBERS),
    ),
    _line(
        "rebalance started",
        "A rebalance began: the members join again and get a new assignment.",
        "A member joined, left or timed out, or a subscription or a topic's partitions changed. The "
        "coordinator's own log gives the reason.",
        (_BLAME, _REPLAY),
    ),
    _line(
        "assignment not stored",
        "The coordinator could not write the assignment to __consumer_offsets, so the group rebalances again.",
        "Too few replicas of the partition of __consumer_offsets are in sync (min.insync.replicas).",
        (_COORDINATOR, _CLUSTER),
    ),
    _line(
        "joining group",
        "The client sends JoinGroup and waits for the group to assemble.",
        f"{_NORMAL} If nothing follows, another member does not join again, and all wait for it.",
        (_MEMBERS, _BLAME),
    ),
    _line(
        "join failed",
        "The client could not join the group and tries again.",
        "The lines around it name the error.",
        (_MEMBERS, _COORDINATOR),
    ),
    _line(
        "joined group",
        "The client is a member of the group in this generation.",
        f"{_NORMAL} The number of the generation counts the rebalances.",
        (_MEMBERS,),
    ),
    _line(
        "group leader",
        "This client leads the group: it computes the assignment of all members.",
        "Every rebalance of a classic group has one leader; who it is does not matter.",
        (_MEMBERS,),
    ),
    _line(
        "group stabilized",
        "The coordinator has all members of the generation, or its assignment: the rebalance ends.",
        _NORMAL,
        (_REPLAY,),
    ),
    _line(
        "members loaded",
        "A broker became coordinator of the group and read its members from __consumer_offsets.",
        "The broker started, or became leader of the partition. Many members of one process that is gone "
        "may mean that it joined with a new member id each time.",
        (_COORDINATOR, _MEMBERS),
    ),
    _line(
        "partitions assigned",
        "The client has new partitions and reads them from the committed offsets.",
        _NORMAL,
        (_BY_TOPIC,),
    ),
    _line(
        "partitions revoked",
        "The client gave partitions back for a rebalance; it could still commit what it had read.",
        f"{_NORMAL} An eager client gives back all partitions at each rebalance.",
        (_BLAME, _BY_TOPIC),
    ),
    _line(
        "partitions lost",
        "The client lost its partitions without a revocation: another member may own them already, and what "
        "was not committed is read again.",
        "Its session expired, it was fenced, or it did not poll within max.poll.interval.ms.",
        (_BLAME, _MEMBERS),
    ),
    _line(
        "group empty",
        "The last member is gone; the offsets stay until they expire.",
        "All consumers were stopped, or all were removed at once.",
        (_DESCRIBE, _BLAME),
    ),
    _line(
        "group removed",
        "The coordinator forgot the group: no members, and no offsets or none that last.",
        "All offsets expired or were deleted, or the group never committed.",
        (_BLAME, "kgroup list"),
    ),
    _line(
        "coordinator found",
        "The client knows which broker coordinates the group.",
        f"{_NORMAL} If it repeats every few seconds, the connection to that broker breaks.",
        (_COORDINATOR,),
    ),
    _line(
        "coordinator lost",
        "The client has no coordinator at the moment, and looks for it again; it cannot commit meanwhile.",
        "The broker restarted or is unreachable under its advertised address, or the group moved to another.",
        (_COORDINATOR, _CLUSTER),
    ),
    _line(
        "heartbeat",
        "The client sends heartbeats to the coordinator, which answers.",
        "Normal: nothing is wrong.",
        (_MEMBERS,),
    ),
    _line(
        "heartbeat failed",
        "A heartbeat failed; this line alone does not say why.",
        "The line before or after it names the error: a rebalance, a lost coordinator, or an unknown member.",
        (_COORDINATOR, _MEMBERS),
    ),
    _line(
        "committed offset",
        "The client starts a partition at its committed offset.",
        _NORMAL,
        (_OFFSETS,),
    ),
    _line(
        "no committed offset",
        "The partition has no committed offset: auto.offset.reset decides where the client starts.",
        "The group or the partition is new, or its offsets expired (offsets.retention.minutes).",
        (_OFFSETS, _BLAME),
    ),
    _line(
        "offset reset",
        "The client moved its position by auto.offset.reset: records are skipped (latest) or read again "
        "(earliest).",
        "No committed offset, or one that is outside the log: retention passed the consumer, or the topic was "
        "created again.",
        (_LAG, _DOCTOR, _BLAME),
    ),
    _line(
        "seek",
        "The application or its framework moved the client to this offset.",
        "A seek in the code, or an error handler that reads a failed record again.",
        (_LAG,),
    ),
    _line(
        "no matching topic",
        "No topic that the client may see matches its subscription, so it gets no partitions.",
        "A misspelt topic or pattern, a topic that does not exist, or no right to DESCRIBE it.",
        (_TOPICS, _MEMBERS),
    ),
    _line(
        "broker unreachable",
        "The client cannot connect to a broker, or lost the connection.",
        "The broker is down, its advertised address cannot be reached from the client, a firewall is between "
        "them, or the listener expects TLS. Node 2147483647 minus N is broker N as the coordinator.",
        (_CLUSTER, _COORDINATOR),
    ),
    _line(
        "request timed out",
        "A broker did not answer in time. Whether the request took effect is unknown.",
        "An overloaded broker, slow replicas of __consumer_offsets, or a network that drops the connection. "
        "JoinGroup waits for all members: there it is one that does not join.",
        (_COORDINATOR, _CLUSTER, _MEMBERS),
    ),
    _line(
        "TLS handshake failed",
        "A TLS connection failed: one side does not accept the other's certificate, or speaks no TLS.",
        "The truststore lacks the CA, the certificate expired or names another host, a client certificate is "
        "demanded, or the port speaks no TLS.",
        (_CLUSTER, _CONFIG),
    ),
    _line(
        "listener mismatch",
        "Client and broker speak different protocols on this port: one expects SASL or TLS, the other not.",
        "security.protocol of the client is not that of the listener.",
        (_CONFIG, _CLUSTER),
    ),
    _line(
        "task migrated",
        "Kafka Streams: the thread dropped out of the group, closes its tasks and joins again.",
        "It did not poll within max.poll.interval.ms, its session expired, or its transaction timed out, so "
        "others own its tasks.",
        (_BLAME, _MEMBERS),
    ),
    _line(
        "streams failed",
        "Kafka Streams: a thread met an exception that it does not handle.",
        "The exception below it is the cause: explain that line too.",
        (_MEMBERS, _DOCTOR),
    ),
    _line(
        "streams dead",
        "Kafka Streams: all threads of the instance ended; it processes nothing until it is restarted.",
        "Each thread met an exception before: the first in the log is the cause.",
        (_MEMBERS, _LAG),
    ),
    _line(
        "streams internal topic",
        "Kafka Streams: an internal topic exists with another number of partitions than the topology needs.",
        "The partitions of an input topic or the topology changed. Reset the application, or give it a new "
        "application.id.",
        (_TOPICS, _DESCRIBE),
    ),
    _line(
        "source topic missing",
        "Kafka Streams: an input topic of the topology does not exist, so the application stops.",
        "The topic was deleted, is misspelt, or may not be described.",
        (_TOPICS, _DESCRIBE),
    ),
    _line(
        "listener failed",
        "Spring: the listener threw an exception; the error handler seeks back, so the record is read again.",
        "A record that the listener cannot process, or something that it needs is down. While it retries, "
        "the partition does not move on.",
        (_LAG, _OFFSETS),
    ),
    _line(
        "container stopped",
        "Spring: the listener container stopped; its partitions go to other members, if there are any.",
        "A fatal error: no rights, a fenced instance id, or no committed offset. The exception is beside it.",
        (_MEMBERS, _INSTANCES),
    ),
    _line(
        "task killed",
        "Connect: the task met an exception and stays stopped until it is restarted by hand.",
        "The exception below it is the cause: explain that line too. The task's partitions are not read.",
        (_LAG, _MEMBERS),
    ),
    _line(
        "sink commit timed out",
        "Connect: the sink task's commit took longer than offset.flush.timeout.ms; it is tried again.",
        "The connector's flush is slow, or the coordinator is. Records may be delivered again after a restart.",
        (_LAG, _COORDINATOR),
    ),
    _line(
        "sink commit failed",
        "Connect: the sink task's offsets were not committed; it reads again from the last commit.",
        "The connector's flush failed, or the task was no longer a member: the exception below says which.",
        (_LAG, _BLAME),
    ),
    _line(
        "source flush timed out",
        "Connect: the source task's records were not sent within offset.flush.timeout.ms, so its offsets were "
        "not stored.",
        "Brokers that are slow or unreachable, or more buffered records than the timeout allows.",
        (_CLUSTER,),
    ),
    _line(
        "config behind",
        "Connect: the worker's configuration is older than the assignment's; it catches up or rebalances.",
        "Normal for a moment. If it lasts, the config topic is not readable, was recreated, or is shared.",
        (_MEMBERS, _TOPICS),
    ),
)

_SOURCES = {
    "broker": "broker: GroupCoordinator.scala, GroupMetadataManager.java",
    "java": "Java: AbstractCoordinator, ConsumerCoordinator",
    "kip-848": "Java: AbstractHeartbeatRequestManager, AbstractMembershipManager",
    "librdkafka": "librdkafka: rdkafka_cgrp.c",
    "franz-go": "franz-go: consumer_group.go",
    "sarama": "sarama: errors.go",
    "kafkajs": "kafkajs",
    "python": "kafka-python, aiokafka: coordinator",
    "streams": "Streams: StreamThread",
    "spring": "Spring: KafkaMessageListenerContainer",
    "connect": "Connect: WorkerSinkTask, DistributedHerder",
    "error": "Java: Errors.java; franz-go: kerr; kafkajs: error.js",
    "librdkafka error": "librdkafka: rdkafka.c, rd_kafka_err_descs",
}
"""Whose message it is, as the table below abbreviates it: client, and class or file."""

_TABLE = r"""
# The coordinator's own log. A client's reason may stand in the same line.
member failed | broker | Preparing to rebalance group .*on heartbeat expiration|[Mm]ember .* has failed, removing it
member failed | broker | fenced from the group because the member session expired
member left | broker | Preparing to rebalance group .* on LeaveGroup|in group \S+ has left, removing it
member left | broker | has left group \S+ through explicit
did not rejoin | broker | Group \S+ removed? dynamic members .*who haven't joined
member left | broker | \[GroupId .*\] Member \S+ left the (?:consumer|share|streams) group
static member left | broker | [Ss]tatic [Mm]ember .* temporarily left the (?:consumer|streams) group
UNRELEASED_INSTANCE_ID | broker | cannot join the group because the instance id is(?: is)? owned by
FENCED_INSTANCE_ID | broker | identified as a known static member .* will respond with instance fenced
assignment not stored | broker | Preparing to rebalance group .*[Ee]rror(?: \S+)? when storing group assignment
member joined | broker | Preparing to rebalance group .*Adding new member
member joined | broker | ynamic member with (?:unknown member )?id .*joins group|tatic member .* joins group
member joined | broker | \[GroupId .*\] (?:Member|Created a new member).*joins the (?:consumer|streams|share) group
rebalance started | broker | Preparing to (?:rebalance|restabilize) group
group stabilized | broker | Stabilized group \S+ generation|Assignment received from leader .*for group
members loaded | broker | Loaded member .* in group|Static member .* of group \S+ loaded with member id
group empty | broker | Group \S+ with generation \d+ is now empty
group removed | broker | [Gg]roup \S+ (?:in generation|generation) \d+ is dead and removed|Group \S+ transitioned to Dead
# The two timeouts that take a member out of its group.
poll interval exceeded | Java: HeartbeatRequestManager, AbstractCoordinator | consumer poll timeout has expired
poll interval exceeded | librdkafka | pplication maximum poll interval|aximum application poll interval|MAX_POLL_EXCEEDED
poll interval exceeded | any client | max\.poll\.interval\.ms exceeded|greater than max\.poll\.interval\.ms
poll interval exceeded | python | Heartbeat poll expired|exceeded max_poll_interval_ms
session timed out | librdkafka | onsumer group session timed out|\|SESSTMOUT\|
session timed out | python | [Hh]eartbeat session expired
session timed out | java | session timed out without receiving a heartbeat response
# Connections: what hides the cause stands behind it.
TLS handshake failed | Java: SslTransportLayer, NetworkClient | SSL handshake failed|PKIX path building failed
TLS handshake failed | Java: javax.net.ssl | SSLHandshakeException|SslAuthenticationException
TLS handshake failed | OpenSSL | (?i)(?:kafka|ssl://|broker ).*certificate(?:[ _]verify[ _]failed| has expired)
TLS handshake failed | librdkafka | Failed to verify broker certificate|Local: SSL error|SSL_HANDSHAKE\)
TLS handshake failed | Go: crypto | (?i)(?:kafka|sarama|kgo|franz|broker).*(?:x509: |tls: )
listener mismatch | librdkafka | verify that security\.protocol is correctly configured|might be due to incorrect security
listener mismatch | broker: SaslServerAuthenticator | Unexpected Kafka request of type \S+ during SASL handshake
SASL_AUTHENTICATION_FAILED | any client | ~SaslAuthentication|SASLAuthentication|SASL (?:\S+ )?authentication (?:failed|error)
SASL_AUTHENTICATION_FAILED | Java: NetworkClient, broker: PlainSaslServer | Authentication failed during authentication due to|Authentication failed: (?:Invalid username or password|credentials for user)
SASL_AUTHENTICATION_FAILED | librdkafka error | Local: Authentication failure
# Errors by the text that clients give them.
FENCED_INSTANCE_ID | error | (?i)rejected this static consumer|group\.instance\.id \S+ gets fenced|FencedInstanceI
FENCED_INSTANCE_ID | librdkafka | tatic consumer fenced by other consumer|consumer fenced by newer instance
UNRELEASED_INSTANCE_ID | error | instance ID is still used by another member|UnreleasedInstanceId
FENCED_MEMBER_EPOCH | error | member epoch is fenced by the group coordinator|FencedMemberEpoch
FENCED_MEMBER_EPOCH | kip-848 | HeartbeatRequest failed for member \S+ because epoch \S+ is fenced
STALE_MEMBER_EPOCH | error | [Tt]he member epoch is stale|StaleMemberEpoch|stale member epoch
GROUP_AUTHORIZATION_FAILED | error | [Gg]roup authorization failed|Not authorized to access group|GroupAuthorization
GROUP_AUTHORIZATION_FAILED | sarama | client is not authorized to access this group
TOPIC_AUTHORIZATION_FAILED | error | [Tt]opic authorization failed|Not authorized to (?:access topics|read from)
TOPIC_AUTHORIZATION_FAILED | sarama | client is not authorized to access this topic
COORDINATOR_LOAD_IN_PROGRESS | error | (?i)coordinator is loading|is loading the group|coordinator load in progress
COORDINATOR_LOAD_IN_PROGRESS | sarama | coordinator is still loading offsets|GroupLoadInProgress|CoordinatorLoadInProgress
NOT_COORDINATOR | error | This is not the correct coordinator|Broker: Not coordinator|NotCoordinator
NOT_COORDINATOR | sarama | consumer group that is not coordinated by this broker
COORDINATOR_NOT_AVAILABLE | error | (?i)the (?:group )?coordinator is not available|coordinator ?not ?available
COORDINATOR_NOT_AVAILABLE | kafkajs | Failed to find group coordinator|GroupCoordinatorNotFound
COORDINATOR_NOT_AVAILABLE | sarama | Offset's topic has not yet been created
INCONSISTENT_GROUP_PROTOCOL | error | supported protocols are incompatible with|Broker: Inconsistent group protocol
INCONSISTENT_GROUP_PROTOCOL | sarama | group protocol type is incompatible with the other members|InconsistentGroupProtocol
GROUP_MAX_SIZE_REACHED | error | onsumer group has reached (?:its max|maximum) size|GroupMaxSizeReached
MEMBER_ID_REQUIRED | error | (?i)member needs (?:to have )?a valid member id|MemberIDRequired
UNKNOWN_MEMBER_ID | error | coordinator is not aware of this member|Broker: Unknown member
UNKNOWN_MEMBER_ID | sarama | provided member is not known in the current generation
UNKNOWN_MEMBER_ID | python | local member_id was not recognized|due to unknown member id|UnknownMemberId|unknown_member_id
ILLEGAL_GENERATION | error | (?i)group generation id is not valid|Illegal_?Generation|generation_id is not current
ILLEGAL_GENERATION | sarama | provided generation id is not the current generation
OFFSET_OUT_OF_RANGE | Java: FetchCollector | Fetch offset \S+ is out of range|Fetch position \S+ is out of range|Offsets out of range with no|(?:Broker: O|request with o)ffset out of range
OFFSET_OUT_OF_RANGE | error | offset is (?:not within|outside) the range of offsets|OffsetOutOfRange
NoOffsetForPartitionException | java | Undefined offset with no reset policy|NoOffsetForPartition
INVALID_REGULAR_EXPRESSION | error | InvalidRegularExpression
INVALID_SESSION_TIMEOUT | error | session timeout is not within the range allowed by the broker|Broker: Invalid session timeout
UNSTABLE_OFFSET_COMMIT | error | unstable offsets that need to be cleared
UNSUPPORTED_ASSIGNOR | error | assignor or its version range is not supported by the consumer group
GROUP_ID_NOT_FOUND | error | [Tt]he group id does not exist
_STATE | librdkafka error | Local: Erroneous state
# Commits of a client that is no longer a member.
CommitFailedException | java | Commit cannot be completed (?:since|due to)|Offset commit cannot be completed since
CommitFailedException | java | not part of an active group|CommitFailedE|group membership out of date
REBALANCE_IN_PROGRESS | error | [Tt]he group is rebalancing|Broker: Group rebalance in progress
REBALANCE_IN_PROGRESS | librdkafka | ~: rebalance in progress$
REBALANCE_IN_PROGRESS | java | since group is rebalancing|group is already rebalancing|began another rebalance
REBALANCE_IN_PROGRESS | sarama | rebalance for the group is in progress|has begun rebalancing the group
REBALANCE_IN_PROGRESS | python | because it is rebalancing|RebalanceInProgress
# Frameworks.
source topic missing | Streams: RepartitionTopics | MissingSourceTopic
RecordDeserializationException | java | Error deserializing (?:key/value|KEY|VALUE) for partition|cannot process 'SerializationException's directly
task killed | Connect: WorkerTask | Task is being killed and will not recover until manually restarted
task migrated | streams | TaskMigrated|thread is being fenced|missed a rebalance and dropped out
streams internal topic | Streams: InternalTopicManager | Existing internal topic \S+ has invalid partitions
streams dead | Streams: KafkaStreams | All stream threads have died|stream-(?:client|thread) .*tate transition from \S+ to (?:PENDING_)?ERROR
streams failed | streams | stream-thread .*(?:Failed to rebalance|Encountered the following|unexpected)
streams failed | streams | stream-thread .*(?:ERROR|Failed to process|Could not (?:close|create) task)
listener failed | spring | Record in retry and not yet recovered
listener failed | spring | Seek to current after exception|istener.*Error handler threw an exception|Backoff .* exhausted for
listener failed | spring | kafka\S*ListenerExecutionFailedException
container stopped | spring | onsumer exception; stopping container|Kafka.*Stopping container due to|authExceptionRetryInterval
sink commit timed out | connect | WorkerSinkTask.* (?:Commit of )?offsets timed out
sink commit failed | connect | Commit of WorkerSinkTask.*(?:unexpected|exception)|Offset commit failed, rewinding
sink commit failed | connect | WorkerSinkTask\S* Commit of offsets threw
source flush timed out | connect | Failed to flush, timed out while waiting for producer|Failed to commit offsets for Worker
config behind | connect | Current config state offset \S+ (?:is behind|does not match)|atching up to assignment's config
# Topics and their leaders.
UNKNOWN_TOPIC_OR_PARTITION | error | (?i)server does not host this topic-partition|unknown topic or partition
UNKNOWN_TOPIC_OR_PARTITION | sarama | topic or partition that does not exist on this broker
LEADER_NOT_AVAILABLE | error | middle of a leadership election|Broker: Leader not available
NOT_LEADER_OR_FOLLOWER | error | not the leader for (?:that|some) (?:topic-)?partition|Broker: Not leader
no matching topic | librdkafka | no topics in metadata matched subscription
# Requests and connections.
request timed out | any client | (?i)(?:kafka|commit|coordinator|partition).*the request timed out|request\(s\) timed out: disconnect|request \S+\(key: \d+, version: \d+\) timed out
request timed out | librdkafka | Timed out \w+Request in flight|Local: Timed out|Local: Message timed out|\|REQTMOUT\|
request timed out | Go: net | (?i)(?:kafka|sarama|kgo|franz|broker|consumer).*(?:i/o timeout|context deadline exceeded)|exceeded the user-specified time limit in the request
broker unreachable | Java: NetworkClient | Connection to node \S+ .*could not be established. (?:Broker|Node) may not be available|Bootstrap broker \S+ .*disconnected
broker unreachable | Java: NetworkClient | ~Node -?\d+ disconnected|Bootstrap broker \S+ disconnected
broker unreachable | librdkafka | \d/\d+ brokers are down|Connect to (?:ipv|unix)\S+ failed|Local: Broker transport failure|Local: Host resolution
broker unreachable | python | NodeNotReadyError|NoBrokersAvailable|KafkaConnectionError|Unable to bootstrap from
broker unreachable | librdkafka | \|FAIL\|.*: Disconnected \(after
broker unreachable | kafka-python, aiokafka: client | (?i)kafka.*(?:Node \S+ connection failed|Unable connect to ")
broker unreachable | sarama: consumer.go | consumer/broker/\d+ disconnecting due to error
broker unreachable | kafkajs | KafkaJSConnectionError|Failed to connect to seed broker
broker unreachable | kafkajs | Crash: \S+: Not connected|\[Connection\] Connection error: |kafkajs.*(?:ECONNREFUSED|ETIMEDOUT|ENOTFOUND)
broker unreachable | Go: net | run out of available brokers|(?i:kafka|sarama|kgo|franz|broker: ?(?:seed|\d)).*(?:connection refused|no such host|unable to dial)
coordinator lost | java | oordinator .*is unavailable or invalid|disconnect from last known coordinator
coordinator lost | java | [Mm]arking (?:the )?coordinator .*(?:dead|unknown)|Coordinator unknown during
coordinator lost | librdkafka | no broker available for coordinator query|Local: Waiting for coordinator
# The normal course of a group.
partitions lost | java | (?:Giving away|Lost) (?:all|previously) assigned partitions|OnPartitionsLost|partitions lost:
partitions lost | kip-848 | Member \S+ with epoch -?\d+ transitioned from \w+ to (?:FENCED|STALE)
partitions assigned | kip-848 | Reconciling assignment with local epoch|with epoch -?\d+ transitioned from \w+ to RECONCILING
joining group | kip-848 | Member \S+ with epoch -?\d+ transitioned from \w+ to JOINING
partitions revoked | java | Revok(?:e|ing) previously assigned partitions|Partitions to revoke:|[Pp]artitions revoked:
partitions revoked | brod | assignments_revoked
partitions assigned | java | (?:Adding|Setting) newly assigned partitions|about the new Assignment\(
partitions assigned | python | Updated partition assignment: |New partitions assigned|[Pp]artitions assigned: [\[{(]
partitions assigned | librdkafka | Group .*: new assignment of \d+ partition
partitions assigned | franz-go | new group session begun
partitions assigned | brod | assignments_received
no committed offset | java | Found no committed offset for partition
committed offset | java | Setting offset for partition .* to the committed offset
committed offset | librdkafka | Fetch(?:ing)? committed offsets for 
offset reset | java | Resetting (?:the |consumer )?offset (?:for|to) |offset reset \(at offset
seek | java, ruby-kafka | Seeking (?:\S+/\d+ to offset \d+|to (?:offset \S+ for|(?:EARLIEST|LATEST|earliest|latest) offset of|beginning of|end of) (?:topic-)?partition)
group leader | python | Elected group leader|selected as leader for group|balancing group as leader|joined, balancing group["; ]
group leader | librdkafka | assignor run for \d+ member
joined group | java | Successfully (?:joined|synced) group (?:.* )?(?:with|in) generation|Joined group at generation
joined group | kafkajs | Consumer has joined the group|"message":"\[Consumer\w*\] Joined
joined group | franz-go | "message":"(?:joined|synced)"|\[INFO\] (?:joined|synced)[;,]
joined group | ruby-kafka, kafka-go, kafka-python | [Jj]oined group \S+ (?:with member id|as member|\(generation)
join failed | any client | Failed to join group; |JoinGroup failed|join group failed|unable to join group session
joining group | java | \(Re-\)joining group|[Rr]equest joining group due to
joining group | any client | joining group(?:"|;|\s*\{)|Joining group ["\x60]|try to join group|: join with \d+ 
member left | any client | LeaveGroup request (?:succeeded|sent|for group \S+ returned)|sending LeaveGroup request|: leave \(in state
member left | java | consumer pro-actively leaving the group|with epoch -?\d+ transitioned from \w+ to (?:PREPARE_)?LEAVING
member left | franz-go | (?:\[INFO\] |"message":")leaving (?:next-gen )?group
rebalance started | connect | ~Rebalance started
rebalance started | sarama-cluster, pykafka | cluster/consumer\s+rebalance|Rebalancing consumer
rebalance started | librdkafka | Group .* initiating rebalance
coordinator found | java | Discovered (?:group )?coordinator|Group coordinator for \S+ is 
coordinator found | librdkafka | Group .* coordinator is \S+ id \d+|coordinator for consumergroup \S+ is #
heartbeat failed | python, franz-go | Heartbeat failed; retrying|heartbeat errored
heartbeat | any client | Heartbeat (?:successful|for group)|heartbeating;|beginning heartbeat loop|DEBUG kafka\.coordinator Heartbeat: 
"""

PATTERNS: tuple[tuple[str, str, str], ...] = tuple(
    (name, _SOURCES.get(source, source), pattern)
    for row in _TABLE.splitlines()
    if row and not row.startswith("#")
    for name, source, pattern in (row.split(" | ", 2),)
)
"""Each pattern with its entry and its source; the first that matches a line counts.

Behind a ~ stands what other software says too: it counts in a line that has a word of Kafka's.
"""
