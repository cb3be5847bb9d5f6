package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData.TopicPartitions;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;

/** The consumer protocol's one operation; the service's own check of a request comes first. */
final class ConsumerOps {
    private final Player player;
    private long made = 0;

    ConsumerOps(Player player) {
        this.player = player;
    }

    void heartbeat(JsonNode op) {
        Client client = player.client(op.get("as").asText());
        short version = Player.version(op);
        if (op.path("member").asText().equals("fresh")) {
            client.forget();
            client.memberId = new Uuid(0x6d656d626572L, ++made).toString();
        }
        ConsumerGroupHeartbeatRequestData request = request(op, client, version);
        int ticket = player.trace.request(request, version, client.name);
        RequestContext context = Player.context(ApiKeys.CONSUMER_GROUP_HEARTBEAT, version, client.name);
        ConsumerGroupHeartbeatResponseData refusal = player.service.refusal(
            service -> service.consumerGroupHeartbeat(context, request));
        if (refusal != null) {
            player.trace.reply(ticket, refusal, version);
            return;
        }
        player.carryOut(ticket, version,
            () -> player.kafka.shard.consumerGroupHeartbeat(context, request),
            reply -> told(op, client, request, reply),
            (error, message) -> {
                if (error == Errors.FENCED_MEMBER_EPOCH || error == Errors.UNKNOWN_MEMBER_ID) {
                    client.epoch = 0;
                    client.owned.clear();
                }
                return new ConsumerGroupHeartbeatResponseData().setErrorCode(error.code()).setErrorMessage(message);
            });
    }

    private ConsumerGroupHeartbeatRequestData request(JsonNode op, Client client, short version) {
        ConsumerGroupHeartbeatRequestData request = new ConsumerGroupHeartbeatRequestData()
            .setGroupId(op.get("group").asText())
            .setMemberId(op.path("member").asText().equals("fresh") ? client.memberId
                : player.member(op, "member", client))
            .setMemberEpoch(Player.epoch(op, client))
            .setInstanceId(Player.text(op, "instance")).setRackId(Player.text(op, "rack"))
            .setRebalanceTimeoutMs(op.path("rebalance").asInt(-1)).setServerAssignor(Player.text(op, "assignor"))
            .setSubscribedTopicNames(op.path("names").isArray() ? Player.texts(op.get("names")) : null);
        if (version >= 1) {
            request.setSubscribedTopicRegex(Player.text(op, "pattern"));
        }
        String owned = Player.text(op, "owned");
        if (owned != null) {
            List<TopicPartitions> partitions = new ArrayList<>();
            if (owned.equals("own")) {
                client.owned.forEach((topic, numbers) -> partitions.add(
                    new TopicPartitions().setTopicId(topic).setPartitions(new ArrayList<>(numbers))));
            }
            request.setTopicPartitions(partitions);
        }
        return request;
    }

    private static ConsumerGroupHeartbeatResponseData told(
        JsonNode op, Client client, ConsumerGroupHeartbeatRequestData request, ConsumerGroupHeartbeatResponseData reply
    ) {
        if (request.memberEpoch() < 0) {
            client.epoch = 0;
            client.owned.clear();
            return reply;
        }
        client.memberId = reply.memberId();
        client.epoch(reply.memberEpoch());
        if (request.memberEpoch() == 0) {
            client.owned.clear();
        }
        if (reply.assignment() != null && !op.path("deaf").asBoolean()) {
            client.owned.clear();
            reply.assignment().topicPartitions().forEach(topic ->
                topic.partitions().forEach(number -> client.own(topic.topicId(), number)));
        }
        return reply;
    }
}
