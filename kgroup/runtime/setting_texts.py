"""What each setting means, as DescribeConfigs documents it (KIP-569): one short text per setting.

A setting of a topic or group and the broker's default for it share a text. Units are in the names.
"""

from __future__ import annotations

from kgroup.runtime.topic_settings import SETTINGS

_TOPICS = {
    "cleanup.policy": "What happens to old segments: delete, compact, both, or nothing.",
    "compression.gzip.level": "Level of gzip compression, 1 to 9; -1 is the library's default.",
    "compression.lz4.level": "Level of lz4 compression, 1 to 17.",
    "compression.type": "Compression of stored batches; producer keeps what the producer chose.",
    "compression.zstd.level": "Level of zstd compression.",
    "delete.retention.ms": "How long a compacted log keeps tombstones.",
    "file.delete.delay.ms": "How long a removed segment stays on disk.",
    "flush.messages": "Sync the log to disk after this many records; 1 syncs every append.",
    "flush.ms": "Sync the log to disk after this time.",
    "follower.replication.throttled.replicas": "Throttled followers, as PARTITION:BROKER.",
    "index.interval.bytes": "Bytes of log between two entries of its offset index.",
    "leader.replication.throttled.replicas": "Throttled leaders, as PARTITION:BROKER.",
    "local.retention.bytes": "Bytes that stay local with tiered storage; -2 means retention.bytes.",
    "local.retention.ms": "How long data stays local with tiered storage; -2 means retention.ms.",
    "max.compaction.lag.ms": "The longest a record may stay without being compacted.",
    "max.message.bytes": "The largest record batch a producer may send, in bytes.",
    "message.timestamp.after.max.ms": "How far a record's timestamp may lie after the broker's time.",
    "message.timestamp.before.max.ms": "How far a record's timestamp may lie before the broker's time.",
    "message.timestamp.type": "Whether records keep the producer's time (CreateTime) or get the broker's.",
    "min.cleanable.dirty.ratio": "The share of a log that is not compacted before compaction starts.",
    "min.compaction.lag.ms": "How long a record is safe from compaction.",
    "min.insync.replicas": "Replicas that must have a record before acks=all is answered.",
    "preallocate": "Whether a new segment takes its full size on disk at once.",
    "remote.log.copy.disable": "Whether tiered storage copies nothing more.",
    "remote.log.delete.on.disable": "Whether switching tiered storage off deletes what was copied.",
    "remote.storage.enable": "Whether segments are copied to tiered storage.",
    "retention.bytes": "Bytes a partition keeps before old segments are deleted; -1 is no limit.",
    "retention.ms": "How long records are kept before they are deleted; -1 is for ever.",
    "segment.bytes": "Size at which a log begins a new segment, in bytes.",
    "segment.index.bytes": "The largest offset index of a segment, in bytes.",
    "segment.jitter.ms": "Random time subtracted from segment.ms, so that segments do not roll together.",
    "segment.ms": "Age at which a log begins a new segment.",
    "unclean.leader.election.enable": "Whether a replica that lacks records may become leader.",
}
_GROUPS = {
    "consumer.assignment.interval.ms": "The least time between two target assignments of a consumer group.",
    "consumer.heartbeat.interval.ms": "How often members of a consumer group send heartbeats.",
    "consumer.session.timeout.ms": "How long a member of a consumer group may be silent.",
    "streams.assignment.interval.ms": "The least time between two target assignments of a streams group.",
    "streams.heartbeat.interval.ms": "How often members of a streams group send heartbeats.",
    "streams.initial.rebalance.delay.ms": "How long the first assignment of a streams group waits.",
    "streams.num.standby.replicas": "Standby copies of each stateful task of a streams group.",
    "streams.session.timeout.ms": "How long a member of a streams group may be silent.",
}
_ROSTER = {
    "kgroup.registered.instance.ids": "Instance ids that the group waits for before it assigns.",
    "kgroup.registration.wait.ms": "How long the group waits for registered members.",
    "kgroup.target.group.size": "Members that are active at a time; others stand by.",
}
_BROKERS = {
    "allow.everyone.if.no.acl.found": "Whether a resource without ACLs is open to all.",
    "authorizer.class.name": "The authorizer; empty means that no rights are checked.",
    "auto.create.topics.enable": "Whether asking for a missing topic creates it.",
    "broker.id": "The id of this broker; another name of node.id.",
    "connections.max.idle.ms": "How long a connection may be idle before it is closed.",
    "default.replication.factor": "Replicas of a topic whose creator names no number.",
    "fetch.max.bytes": "The most bytes that one fetch returns.",
    "follower.replication.throttled.rate": "Stored for Kafka's tools; nothing is replicated here.",
    "group.consumer.assignors": "Server-side assignors of consumer groups; the first is the default.",
    "group.consumer.max.size": "The most members of a consumer group.",
    "group.consumer.migration.policy": "Which conversions between classic and consumer groups are allowed.",
    "group.consumer.regex.refresh.interval.ms": "How often subscribed patterns are matched again.",
    "group.coordinator.rebalance.protocols": "The group protocols that are served.",
    "group.initial.rebalance.delay.ms": "How long the first rebalance of a classic group waits for members.",
    "group.max.session.timeout.ms": "The longest session timeout a classic member may ask for.",
    "group.max.size": "The most members of a classic group.",
    "group.min.session.timeout.ms": "The shortest session timeout a classic member may ask for.",
    "group.streams.max.size": "The most members of a streams group.",
    "group.streams.max.standby.replicas": "The most standby copies that a streams group may set.",
    "kgroup.client.assignors.enable": "Whether client-side assignors of the consumer protocol are served.",
    "kgroup.connections.setup.timeout.ms": "How long a TLS handshake may take, and SASL after it.",
    "leader.replication.throttled.rate": "Stored for Kafka's tools; nothing is replicated here.",
    "log.cleaner.backoff.ms": "Pause between two looks for logs to compact.",
    "max.connections": "The most connections of this broker.",
    "max.incremental.fetch.session.cache.slots": "The most fetch sessions of this broker.",
    "node.id": "The id of this broker.",
    "num.partitions": "Partitions of a topic whose creator names no number.",
    "offset.metadata.max.bytes": "The most bytes of metadata of a committed offset.",
    "offsets.retention.check.interval.ms": "How often expired offsets are looked for.",
    "offsets.retention.minutes": "How long committed offsets outlive their group's last member, in minutes.",
    "offsets.topic.num.partitions": "Partitions of __consumer_offsets; fixed once it exists.",
    "offsets.topic.replication.factor": "Replicas of __consumer_offsets.",
    "offsets.topic.segment.bytes": "Size of segments of __consumer_offsets, in bytes.",
    "replica.alter.log.dirs.io.max.bytes.per.second": "Stored for Kafka's tools; nothing is throttled here.",
    "socket.request.max.bytes": "The largest request, in bytes.",
    "super.users": "Principals that no ACL binds, separated by semicolons.",
    "transaction.max.timeout.ms": "The longest transaction timeout a producer may ask for.",
    "transaction.state.log.num.partitions": "Partitions of __transaction_state; fixed once it exists.",
    "transaction.state.log.replication.factor": "Replicas of __transaction_state.",
    "transaction.state.log.segment.bytes": "Size of segments of __transaction_state, in bytes.",
    "transactional.id.expiration.ms": "How long an unused transactional id is remembered.",
}
_LISTENERS = {
    "advertised.listeners": "Addresses that clients of each listener are sent to.",
    "connection.failed.authentication.delay.ms": "Delay of the answer to a failed authentication.",
    "connections.max.reauth.ms": "The longest session of an authentication; 0 is no limit.",
    "listener.security.protocol.map": "The security protocol of each listener.",
    "listeners": "Addresses at which this broker listens.",
    "principal.builder.class": "The class that names principals.",
    "sasl.enabled.mechanisms": "SASL mechanisms that clients may use.",
    "sasl.oauthbearer.clock.skew.seconds": "Difference of clocks allowed for the times of a token.",
    "sasl.oauthbearer.expected.audience": "Audiences of which a token must name one.",
    "sasl.oauthbearer.expected.issuer": "The issuer that a token must name.",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "How often the keys of tokens are fetched again.",
    "sasl.oauthbearer.jwks.endpoint.url": "Where the keys of tokens are: a file or an HTTPS address.",
    "sasl.oauthbearer.scope.claim.name": "The claim of a token that holds its scope.",
    "sasl.oauthbearer.sub.claim.name": "The claim of a token that holds the user's name.",
    "sasl.server.callback.handler.class": "The class that validates tokens.",
    "sasl.server.max.receive.size": "The largest frame before authentication, in bytes.",
    "ssl.client.auth": "Whether clients must show a certificate: required, requested or none.",
    "ssl.enabled.protocols": "Versions of TLS that are served.",
    "ssl.key.password": "Password of the private key.",
    "ssl.keystore.certificate.chain": "The broker's certificates, in PEM.",
    "ssl.keystore.key": "The broker's private key, in PEM.",
    "ssl.keystore.location": "File with the broker's key and certificates.",
    "ssl.keystore.password": "Password of the key store.",
    "ssl.keystore.type": "Format of the key store: PEM, PKCS12 or JKS.",
    "ssl.principal.mapping.rules": "Rules that turn a certificate's name into a principal.",
    "ssl.truststore.certificates": "Certificates that clients' certificates are checked with, in PEM.",
    "ssl.truststore.location": "File with the certificates that clients' certificates are checked with.",
    "ssl.truststore.password": "Password of the trust store.",
    "ssl.truststore.type": "Format of the trust store: PEM, PKCS12 or JKS.",
}
_BOUNDS = {"min": "The least value of {}.", "max": "The greatest value of {}."}
_BOUNDED = ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")

TEXTS: dict[str, str] = {
    **_TOPICS,
    **_GROUPS,
    **_ROSTER,
    **_BROKERS,
    **_LISTENERS,
    **{f"group.{name}": text for name, text in _GROUPS.items()},
    **{s.broker_name: _TOPICS[name] for name, s in SETTINGS.items() if s.broker_name},
    **{
        f"group.{kind}.{bound}.{name}": text.format(f"group.{kind}.{name}")
        for kind in ("consumer", "streams")
        for bound, text in _BOUNDS.items()
        for name in _BOUNDED
    },
}
"""By the name of the setting."""
