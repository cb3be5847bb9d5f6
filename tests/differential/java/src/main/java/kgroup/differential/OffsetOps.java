package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseGroup;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponsePartitions;
import org.apache.kafka.common.message.OffsetFetchResponseData.OffsetFetchResponseTopics;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetCommitResponse;
import org.apache.kafka.common.requests.OffsetDeleteResponse;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TxnOffsetCommitRequest;
import org.apache.kafka.common.requests.TxnOffsetCommitResponse;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;

/** Offsets: committed, plainly and in transactions, fetched, deleted; what KafkaApis does itself comes first. */
final class OffsetOps {
    private static final int NO_ADMIN_EPOCH = -1;
    private static final int TOPIC_IDS_SINCE = 6;
    private final Player player;

    OffsetOps(Player player) {
        this.player = player;
    }

    void play(JsonNode op) {
        switch (op.get("do").asText()) {
            case "commit" -> commit(op);
            case "txn_commit" -> transactional(op);
            case "end_txn" -> player.kafka.endTransaction(op.get("producer").asLong(), op.get("commit").asBoolean());
            case "fetch" -> fetch(op);
            default -> delete(op);
        }
    }

    private Client client(JsonNode op) {
        return player.client(op.get("as").asText());
    }

    /** The parts of an operation by topic, each `[topic, partition, ...]`; a topic has none where the partition is null. */
    private Map<String, List<JsonNode>> parts(JsonNode op) {
        Map<String, List<JsonNode>> byTopic = new LinkedHashMap<>();
        for (JsonNode part : op.get("parts")) {
            List<JsonNode> parts = byTopic.computeIfAbsent(part.get(0).asText(), any -> new ArrayList<>());
            if (!part.get(1).isNull()) {
                parts.add(part);
            }
        }
        return byTopic;
    }

    private boolean exists(String topic, int partition) {
        return partition >= 0 && partition < player.topics.sizes().getOrDefault(topic, 0);
    }

    private Uuid asked(String topic) {
        Uuid id = player.topics.id(topic);
        return id.equals(Uuid.ZERO_UUID) ? new Uuid(99, topic.hashCode()) : id;
    }

    private void commit(JsonNode op) {
        Client client = client(op);
        short version = Player.version(op);
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(op.get("group").asText())
            .setMemberId(player.member(op, "member", client)).setGenerationIdOrMemberEpoch(Player.epoch(op, client))
            .setGroupInstanceId(version < 7 ? null : Player.text(op, "instance"));
        if (version < 5) {
            request.setRetentionTimeMs(op.path("retention").asLong(-1));
        }
        parts(op).forEach((name, parts) -> {
            OffsetCommitRequestTopic topic = new OffsetCommitRequestTopic().setName(name).setTopicId(asked(name));
            parts.forEach(part -> topic.partitions().add(new OffsetCommitRequestPartition()
                .setPartitionIndex(part.get(1).asInt()).setCommittedOffset(part.get(2).asLong())
                .setCommittedLeaderEpoch(version < 6 ? -1 : part.get(3).asInt())
                .setCommittedMetadata(part.get(4).isNull() ? null : part.get(4).asText())));
            request.topics().add(topic);
        });
        int ticket = player.trace.request(request, version, client.name);
        OffsetCommitResponse.Builder answer = OffsetCommitResponse.newBuilder(OffsetCommitResponse.useTopicIds(version));
        request.setTopics(valid(request, answer, OffsetCommitResponse.useTopicIds(version)));
        if (request.topics().isEmpty()) {
            player.trace.reply(ticket, answer.build().data(), version);
            return;
        }
        player.carryOut(ticket, version,
            () -> player.kafka.shard.commitOffset(Player.context(ApiKeys.OFFSET_COMMIT, version, client.name), request),
            reply -> answer.merge(reply).build().data(),
            (error, message) -> answer.merge(OffsetCommitRequest.getErrorResponse(request, error)).build().data());
    }

    /** What KafkaApis.handleOffsetCommitRequest leaves of a request; the rest it answers. */
    private List<OffsetCommitRequestTopic> valid(
        OffsetCommitRequestData request, OffsetCommitResponse.Builder answer, boolean byId
    ) {
        List<OffsetCommitRequestTopic> valid = new ArrayList<>();
        for (OffsetCommitRequestTopic topic : request.topics()) {
            if (byId) {
                topic.setName(player.topics.name(topic.topicId()));
            } else {
                topic.setTopicId(player.topics.id(topic.name()));
            }
            if (topic.name().isEmpty() || topic.topicId().equals(Uuid.ZERO_UUID)) {
                answer.addPartitions(topic.topicId(), topic.name(), topic.partitions(),
                    OffsetCommitRequestPartition::partitionIndex,
                    byId ? Errors.UNKNOWN_TOPIC_ID : Errors.UNKNOWN_TOPIC_OR_PARTITION);
                continue;
            }
            OffsetCommitRequestTopic some = new OffsetCommitRequestTopic().setTopicId(topic.topicId())
                .setName(topic.name());
            for (OffsetCommitRequestPartition partition : topic.partitions()) {
                if (exists(topic.name(), partition.partitionIndex())) {
                    some.partitions().add(partition);
                } else {
                    answer.addPartition(topic.topicId(), topic.name(), partition.partitionIndex(),
                        Errors.UNKNOWN_TOPIC_OR_PARTITION);
                }
            }
            if (!some.partitions().isEmpty()) {
                valid.add(some);
            }
        }
        return valid;
    }

    private void transactional(JsonNode op) {
        Client client = client(op);
        short version = Player.version(op);
        long producer = op.get("producer").asLong();
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setGroupId(op.get("group").asText())
            .setTransactionalId("txn-" + producer).setProducerId(producer).setProducerEpoch((short) 0)
            .setMemberId(player.member(op, "member", client))
            .setGroupInstanceId(Player.text(op, "instance"));
        Release.epoch(request, Player.epoch(op, client));
        TxnOffsetCommitResponse.Builder answer = Release.answer(version);
        boolean byId = version >= TOPIC_IDS_SINCE;
        parts(op).forEach((name, parts) -> {
            TxnOffsetCommitRequestTopic topic = new TxnOffsetCommitRequestTopic().setName(name);
            Release.topic(topic, byId ? asked(name) : Uuid.ZERO_UUID);
            parts.forEach(part -> topic.partitions().add(new TxnOffsetCommitRequestPartition()
                .setPartitionIndex(part.get(1).asInt()).setCommittedOffset(part.get(2).asLong())
                .setCommittedLeaderEpoch(part.get(3).asInt())
                .setCommittedMetadata(part.get(4).isNull() ? null : part.get(4).asText())));
            request.topics().add(topic);
        });
        int ticket = player.trace.request(request, version, client.name);
        request.topics().forEach(topic -> {
            if (byId) {
                topic.setName(player.topics.name(Release.topic(topic)));
            } else {
                Release.topic(topic, player.topics.id(topic.name()));
            }
            if (!player.topics.sizes().containsKey(topic.name())) {
                Release.unknown(answer, topic, byId ? Errors.UNKNOWN_TOPIC_ID : Errors.UNKNOWN_TOPIC_OR_PARTITION);
                topic.partitions().clear();
            }
            topic.partitions().removeIf(partition -> {
                boolean unknown = !exists(topic.name(), partition.partitionIndex());
                if (unknown) {
                    Release.unknown(answer, topic, partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                }
                return unknown;
            });
        });
        request.topics().removeIf(topic -> topic.partitions().isEmpty());
        RequestContext context = Player.context(ApiKeys.TXN_OFFSET_COMMIT, version, client.name);
        TxnOffsetCommitResponseData refusal = request.topics().isEmpty() ? new TxnOffsetCommitResponseData()
            : player.service.refusal(
                service -> Release.commit(service, context, request));
        if (refusal != null) {
            player.trace.reply(ticket, answer.merge(refusal).build().data(), version);
            return;
        }
        player.carryOut(ticket, version, producer,
            () -> player.kafka.shard.commitTransactionalOffset(context, request),
            reply -> answer.merge(reply).build().data(),
            (error, message) -> answer.merge(TxnOffsetCommitRequest.getErrorResponse(request, error)).build().data());
    }

    private void fetch(JsonNode op) {
        Client client = client(op);
        short version = Player.version(op);
        boolean stable = op.path("stable").asBoolean();
        OffsetFetchRequestData request = new OffsetFetchRequestData().setRequireStable(stable);
        List<String> names = new ArrayList<>(List.of(op.get("group").asText()));
        names.addAll(Player.texts(op.path("also")));
        for (String name : names) {
            OffsetFetchRequestGroup group = new OffsetFetchRequestGroup().setGroupId(name);
            if (version >= 9 && op.path("member").isTextual()) {
                group.setMemberId(player.member(op, "member", client)).setMemberEpoch(Player.epoch(op, client));
            } else {
                group.setMemberId(null).setMemberEpoch(NO_ADMIN_EPOCH);
            }
            request.groups().add(group.setTopics(op.path("parts").isArray() ? fetched(op) : null));
        }
        int ticket = player.trace.request(request, version, client.name);
        long upTo = stable ? Long.MAX_VALUE : player.kafka.committed();
        player.carryOut(ticket, version,
            () -> new CoordinatorResult<>(List.of(),
                request.groups().stream().map(group -> answered(group, version, upTo)).toList()),
            groups -> new OffsetFetchResponseData().setGroups(groups),
            (error, message) -> {
                throw new IllegalStateException(message);
            });
    }

    private List<OffsetFetchRequestTopics> fetched(JsonNode op) {
        List<OffsetFetchRequestTopics> topics = new ArrayList<>();
        parts(op).forEach((name, parts) -> topics.add(new OffsetFetchRequestTopics().setName(name)
            .setTopicId(asked(name)).setPartitionIndexes(parts.stream().map(part -> part.get(1).asInt()).toList())));
        return topics;
    }

    /** One group as KafkaApis.fetchOffsetsForGroup answers: of topic ids it does not know by itself. */
    private OffsetFetchResponseGroup answered(OffsetFetchRequestGroup group, short version, long upTo) {
        List<OffsetFetchResponseTopics> unknown = new ArrayList<>();
        OffsetFetchRequestGroup asked = group.duplicate();
        if (group.topics() != null && version >= 10) {
            asked.topics().forEach(topic -> topic.setName(player.topics.name(topic.topicId())));
            asked.topics().removeIf(topic -> {
                boolean none = topic.name().isEmpty();
                if (none) {
                    unknown.add(new OffsetFetchResponseTopics().setTopicId(topic.topicId()).setPartitions(
                        topic.partitionIndexes().stream().map(index -> new OffsetFetchResponsePartitions()
                            .setPartitionIndex(index).setCommittedOffset(-1)
                            .setErrorCode(Errors.UNKNOWN_TOPIC_ID.code())).toList()));
                }
                return none;
            });
        }
        try {
            OffsetFetchResponseGroup answer = named(player.kafka.shard.fetchOffsets(asked, upTo), version);
            if (answer.errorCode() == 0) {
                answer.setTopics(new ArrayList<>(answer.topics()));
                answer.topics().addAll(unknown);
            }
            return answer;
        } catch (RuntimeException failed) {
            player.trace.failed(Errors.forException(failed), failed);
            return OffsetFetchResponse.groupError(group, Errors.forException(failed), version);
        }
    }

    /** The broker puts topic ids into the answer to a request that has them. */
    private OffsetFetchResponseGroup named(
        OffsetFetchResponseGroup group, short version
    ) {
        if (version >= 10) {
            group.setTopics(new ArrayList<>(group.topics()));
            group.topics().forEach(topic -> topic.setTopicId(player.topics.id(topic.name())));
            group.topics().removeIf(topic -> topic.topicId().equals(Uuid.ZERO_UUID));
        }
        return group;
    }

    private void delete(JsonNode op) {
        OffsetDeleteRequestData request = new OffsetDeleteRequestData().setGroupId(op.get("group").asText());
        parts(op).forEach((name, parts) -> {
            OffsetDeleteRequestTopic topic = new OffsetDeleteRequestTopic().setName(name);
            parts.forEach(part -> topic.partitions().add(
                new OffsetDeleteRequestPartition().setPartitionIndex(part.get(1).asInt())));
            request.topics().add(topic);
        });
        short version = 0;
        int ticket = player.trace.request(request, version, "admin");
        OffsetDeleteResponse.Builder answer = new OffsetDeleteResponse.Builder();
        request.topics().forEach(topic -> {
            if (!player.topics.sizes().containsKey(topic.name())) {
                answer.addPartitions(topic.name(), topic.partitions(), OffsetDeleteRequestPartition::partitionIndex,
                    Errors.UNKNOWN_TOPIC_OR_PARTITION);
                topic.partitions().clear();
            }
            topic.partitions().removeIf(partition -> {
                boolean unknown = !exists(topic.name(), partition.partitionIndex());
                if (unknown) {
                    answer.addPartition(topic.name(), partition.partitionIndex(), Errors.UNKNOWN_TOPIC_OR_PARTITION);
                }
                return unknown;
            });
        });
        request.topics().removeIf(topic -> topic.partitions().isEmpty());
        RequestContext context = Player.context(ApiKeys.OFFSET_DELETE, version, "admin");
        OffsetDeleteResponseData refusal = player.service.refusal(
            service -> Release.delete(service, context, request));
        if (refusal != null) {
            player.trace.reply(ticket, answer.merge(refusal).build().data(), version);
            return;
        }
        player.carryOut(ticket, version,
            () -> player.kafka.shard.deleteOffsets(context, request),
            reply -> answer.merge(reply).build().data(),
            (error, message) -> answer.merge(new OffsetDeleteResponseData().setErrorCode(error.code())).build().data());
    }
}
