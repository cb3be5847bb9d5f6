package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.message.OffsetCommitRequestData;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestPartition;
import org.apache.kafka.common.message.OffsetCommitRequestData.OffsetCommitRequestTopic;
import org.apache.kafka.common.message.OffsetCommitResponseData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestPartition;
import org.apache.kafka.common.message.OffsetDeleteRequestData.OffsetDeleteRequestTopic;
import org.apache.kafka.common.message.OffsetDeleteResponseData;
import org.apache.kafka.common.message.OffsetFetchRequestData;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestGroup;
import org.apache.kafka.common.message.OffsetFetchRequestData.OffsetFetchRequestTopics;
import org.apache.kafka.common.message.OffsetFetchResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.requests.TxnOffsetCommitRequest;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;

/** Offsets: committed, plainly and in transactions, fetched, deleted. Topics that do not exist are left out. */
final class OffsetOps {
    private static final int NO_ADMIN_EPOCH = -1;
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

    private int epoch(JsonNode op, Client client) {
        JsonNode epoch = op.get("epoch");
        return epoch.has("set") ? epoch.get("set").asInt() : client.epoch + epoch.get("own").asInt();
    }

    /** The parts of an operation by topic, each `[topic, partition, ...]`; only partitions that exist. */
    private Map<String, List<JsonNode>> parts(JsonNode op) {
        Map<String, List<JsonNode>> byTopic = new LinkedHashMap<>();
        for (JsonNode part : op.get("parts")) {
            String topic = part.get(0).asText();
            if (part.get(1).asInt() < player.topics.sizes().getOrDefault(topic, 0)) {
                byTopic.computeIfAbsent(topic, any -> new ArrayList<>()).add(part);
            }
        }
        return byTopic;
    }

    private void commit(JsonNode op) {
        Client client = client(op);
        short version = Player.version(op);
        OffsetCommitRequestData request = new OffsetCommitRequestData().setGroupId(op.get("group").asText())
            .setMemberId(player.member(op, "member", client)).setGenerationIdOrMemberEpoch(epoch(op, client))
            .setGroupInstanceId(version < 7 ? null : Player.text(op, "instance"));
        if (version < 5) {
            request.setRetentionTimeMs(op.path("retention").asLong(-1));
        }
        parts(op).forEach((name, parts) -> {
            OffsetCommitRequestTopic topic = new OffsetCommitRequestTopic().setName(name)
                .setTopicId(player.topics.id(name));
            parts.forEach(part -> topic.partitions().add(new OffsetCommitRequestPartition()
                .setPartitionIndex(part.get(1).asInt()).setCommittedOffset(part.get(2).asLong())
                .setCommittedLeaderEpoch(version < 6 ? -1 : part.get(3).asInt())
                .setCommittedMetadata(part.get(4).isNull() ? null : part.get(4).asText())));
            request.topics().add(topic);
        });
        int ticket = player.trace.request(request, version, client.name);
        request.topics().forEach(this::complete);
        if (request.topics().isEmpty()) {
            player.trace.reply(ticket, new OffsetCommitResponseData(), version);
            return;
        }
        player.carryOut(ticket, version,
            () -> player.kafka.shard.commitOffset(Player.context(ApiKeys.OFFSET_COMMIT, version, client.name), request),
            reply -> reply,
            (error, message) -> OffsetCommitRequest.getErrorResponse(request, error));
    }

    /** The broker gives a topic the name or the id that its request leaves out. */
    private void complete(OffsetCommitRequestTopic topic) {
        if (topic.name().isEmpty()) {
            topic.setName(player.topics.name(topic.topicId()));
        }
        topic.setTopicId(player.topics.id(topic.name()));
    }

    private void transactional(JsonNode op) {
        Client client = client(op);
        short version = Player.version(op);
        long producer = op.get("producer").asLong();
        TxnOffsetCommitRequestData request = new TxnOffsetCommitRequestData().setGroupId(op.get("group").asText())
            .setTransactionalId("txn-" + producer).setProducerId(producer).setProducerEpoch((short) 0)
            .setMemberId(player.member(op, "member", client)).setGenerationId(epoch(op, client))
            .setGroupInstanceId(Player.text(op, "instance"));
        parts(op).forEach((name, parts) -> {
            TxnOffsetCommitRequestTopic topic = new TxnOffsetCommitRequestTopic().setName(name);
            parts.forEach(part -> topic.partitions().add(new TxnOffsetCommitRequestPartition()
                .setPartitionIndex(part.get(1).asInt()).setCommittedOffset(part.get(2).asLong())
                .setCommittedLeaderEpoch(part.get(3).asInt())
                .setCommittedMetadata(part.get(4).isNull() ? null : part.get(4).asText())));
            request.topics().add(topic);
        });
        int ticket = player.trace.request(request, version, client.name);
        if (request.topics().isEmpty()) {
            player.trace.reply(ticket, new TxnOffsetCommitResponseData(), version);
            return;
        }
        player.carryOut(ticket, version, producer,
            () -> player.kafka.shard.commitTransactionalOffset(
                Player.context(ApiKeys.TXN_OFFSET_COMMIT, version, client.name), request),
            reply -> reply,
            (error, message) -> TxnOffsetCommitRequest.getErrorResponse(request, error));
    }

    private void fetch(JsonNode op) {
        Client client = client(op);
        short version = Player.version(op);
        boolean stable = op.path("stable").asBoolean();
        OffsetFetchRequestGroup group = new OffsetFetchRequestGroup().setGroupId(op.get("group").asText());
        if (version >= 9 && op.path("member").isTextual()) {
            group.setMemberId(player.member(op, "member", client)).setMemberEpoch(epoch(op, client));
        } else {
            group.setMemberId(null).setMemberEpoch(NO_ADMIN_EPOCH);
        }
        if (op.path("parts").isArray()) {
            List<OffsetFetchRequestTopics> topics = new ArrayList<>();
            parts(op).forEach((name, parts) -> topics.add(new OffsetFetchRequestTopics().setName(name)
                .setTopicId(player.topics.id(name))
                .setPartitionIndexes(parts.stream().map(part -> part.get(1).asInt()).toList())));
            group.setTopics(topics);
        } else {
            group.setTopics(null);
        }
        OffsetFetchRequestData request = new OffsetFetchRequestData().setGroups(List.of(group)).setRequireStable(stable);
        int ticket = player.trace.request(request, version, client.name);
        OffsetFetchRequestGroup asked = request.groups().get(0);
        if (asked.topics() != null) {
            asked.topics().forEach(topic -> topic.setName(
                topic.name().isEmpty() ? player.topics.name(topic.topicId()) : topic.name()));
        }
        long upTo = stable ? Long.MAX_VALUE : player.kafka.committed();
        player.carryOut(ticket, version,
            () -> new CoordinatorResult<>(List.of(), player.kafka.shard.fetchOffsets(asked, upTo)),
            reply -> new OffsetFetchResponseData().setGroups(List.of(named(reply, version))),
            (error, message) -> new OffsetFetchResponseData().setGroups(
                List.of(OffsetFetchResponse.groupError(asked, error, version))));
    }

    /** The broker puts topic ids into the answer to a request that has them. */
    private OffsetFetchResponseData.OffsetFetchResponseGroup named(
        OffsetFetchResponseData.OffsetFetchResponseGroup group, short version
    ) {
        if (version >= 10) {
            group.setTopics(new ArrayList<>(group.topics()));
            group.topics().forEach(topic -> topic.setTopicId(player.topics.id(topic.name())));
            group.topics().removeIf(topic -> topic.topicId().equals(org.apache.kafka.common.Uuid.ZERO_UUID));
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
        player.carryOut(ticket, version,
            () -> player.kafka.shard.deleteOffsets(Player.context(ApiKeys.OFFSET_DELETE, version, "admin"), request),
            reply -> reply,
            (error, message) -> new OffsetDeleteResponseData().setErrorCode(error.code()));
    }
}
