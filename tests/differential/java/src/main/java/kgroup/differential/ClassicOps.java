package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.HeartbeatRequestData;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupRequestData.JoinGroupRequestProtocol;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupRequestData;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupRequestData.SyncGroupRequestAssignment;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.RequestContext;

/** The classic protocol's operations: a program's line becomes a request, the reply becomes what the client knows. */
final class ClassicOps {
    private final Player player;

    ClassicOps(Player player) {
        this.player = player;
    }

    void play(JsonNode op) {
        Client client = player.client(op.get("as").asText());
        switch (op.get("do").asText()) {
            case "join" -> join(op, client);
            case "sync" -> sync(op, client);
            case "heartbeat" -> heartbeat(op, client);
            default -> leave(op, client);
        }
    }

    private void join(JsonNode op, Client client) {
        short version = Player.version(op);
        JoinGroupRequestData request = new JoinGroupRequestData().setGroupId(op.get("group").asText())
            .setMemberId(player.member(op, "member", client)).setGroupInstanceId(Player.text(op, "instance"))
            .setProtocolType(op.get("type").asText()).setSessionTimeoutMs(op.get("session").asInt())
            .setRebalanceTimeoutMs(op.get("rebalance").asInt()).setReason(version < 8 ? null : Player.text(op, "reason"));
        for (JsonNode protocol : op.get("protocols")) {
            request.protocols().add(new JoinGroupRequestProtocol().setName(protocol.get("name").asText())
                .setMetadata(subscription(protocol, client)));
        }
        int ticket = player.trace.request(request, version, client.name);
        RequestContext context = Player.context(ApiKeys.JOIN_GROUP, version, client.name);
        JoinGroupResponseData refusal = player.service.refusal(
            service -> Release.join(service, context, request));
        if (refusal != null) {
            player.trace.reply(ticket, new JoinGroupResponse(refusal, version).data(), version);
            return;
        }
        CompletableFuture<JoinGroupResponseData> answer = new CompletableFuture<>();
        player.trace.replyWhenDone(ticket,
            answer.thenApply(data -> new JoinGroupResponse(data, version).data()), version);
        answer.thenAccept(data -> joined(client, data));
        Ids.next(request.groupInstanceId() != null ? request.groupInstanceId() : client.name);
        player.carryOut(ticket, version,
            () -> Release.join(player.kafka.shard, context, request, answer),
            nothing -> null,
            (error, message) -> failed(answer, new JoinGroupResponseData().setErrorCode(error.code())));
        Ids.next(null);
    }

    private static <T extends Message> Message failed(CompletableFuture<T> answer, T reply) {
        answer.complete(reply);
        return null;
    }

    private static void joined(Client client, JoinGroupResponseData data) {
        Errors error = Errors.forCode(data.errorCode());
        if (error == Errors.NONE) {
            client.memberId = data.memberId();
            client.epoch(data.generationId());
            client.leader = data.leader();
            client.protocol = data.protocolName();
            client.members = new ArrayList<>();
            data.members().forEach(member -> client.members.add(member.memberId()));
        } else if (error == Errors.MEMBER_ID_REQUIRED) {
            client.memberId = data.memberId();
        } else if (error == Errors.UNKNOWN_MEMBER_ID || error == Errors.FENCED_INSTANCE_ID) {
            client.forget();
        }
    }

    private byte[] subscription(JsonNode protocol, Client client) {
        if (protocol.has("raw")) {
            return Hex.bytes(protocol.get("raw").asText());
        }
        List<TopicPartition> owned = new ArrayList<>();
        if (protocol.path("owned").asBoolean()) {
            player.topics.sizes().keySet().forEach(name ->
                client.owned.getOrDefault(player.topics.id(name), java.util.Set.of())
                    .forEach(number -> owned.add(new TopicPartition(name, number))));
        }
        String user = Player.text(protocol, "user");
        byte[] bytes = Hex.bytes(ConsumerProtocol.serializeSubscription(
            new Subscription(Player.texts(protocol.get("topics")),
                user == null ? null : ByteBuffer.wrap(Hex.bytes(user)), owned,
                client.epoch, Optional.ofNullable(Player.text(protocol, "rack"))),
            (short) protocol.path("version").asInt()));
        return Arrays.copyOf(bytes, Math.max(0, bytes.length - protocol.path("cut").asInt()));
    }

    private void sync(JsonNode op, Client client) {
        short version = Player.version(op);
        String protocol = Player.text(op, "protocol");
        SyncGroupRequestData request = new SyncGroupRequestData().setGroupId(op.get("group").asText())
            .setMemberId(player.member(op, "member", client)).setGroupInstanceId(Player.text(op, "instance"))
            .setGenerationId(Player.epoch(op, client)).setProtocolType(Player.text(op, "type"))
            .setProtocolName("own".equals(protocol) ? client.protocol : protocol).setAssignments(shares(op, client));
        if (version >= 5 && (request.protocolType() == null || request.protocolName() == null)) {
            request.setProtocolType("consumer").setProtocolName("range");
        }
        int ticket = player.trace.request(request, version, client.name);
        RequestContext context = Player.context(ApiKeys.SYNC_GROUP, version, client.name);
        SyncGroupResponseData refusal = player.service.refusal(
            service -> Release.sync(service, context, request));
        if (refusal != null) {
            player.trace.reply(ticket, refusal, version);
            return;
        }
        CompletableFuture<SyncGroupResponseData> answer = new CompletableFuture<>();
        player.trace.replyWhenDone(ticket, answer, version);
        answer.thenAccept(data -> synced(client, data));
        player.carryOut(ticket, version,
            () -> player.kafka.shard.classicGroupSync(context, request, answer),
            nothing -> null,
            (error, message) -> failed(answer, new SyncGroupResponseData().setErrorCode(error.code())));
    }

    /** The leader's assignments; those of "shares" go to the members in the order the join's reply named them. */
    private List<SyncGroupRequestAssignment> shares(JsonNode op, Client client) {
        List<SyncGroupRequestAssignment> given = new ArrayList<>();
        JsonNode shares = op.path("shares");
        for (int i = 0; client.leads() && i < shares.size() && i < client.members.size(); i++) {
            JsonNode share = shares.get(i);
            if (share.isNull()) {
                continue;
            }
            byte[] bytes;
            if (share.isTextual()) {
                bytes = Hex.bytes(share.asText());
            } else {
                List<TopicPartition> partitions = new ArrayList<>();
                share.forEach(one -> partitions.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
                bytes = Hex.bytes(ConsumerProtocol.serializeAssignment(new Assignment(partitions)));
            }
            given.add(new SyncGroupRequestAssignment().setMemberId(client.members.get(i)).setAssignment(bytes));
        }
        return given;
    }

    private void synced(Client client, SyncGroupResponseData data) {
        if (data.errorCode() == Errors.UNKNOWN_MEMBER_ID.code()) {
            client.forget();
        } else if (data.errorCode() == 0 && data.assignment().length > 2) {
            client.owned.clear();
            try {
                Assignment assignment = ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(data.assignment()));
                for (TopicPartition partition : assignment.partitions()) {
                    Uuid topic = player.topics.id(partition.topic());
                    if (!topic.equals(Uuid.ZERO_UUID)) {
                        client.own(topic, partition.partition());
                    }
                }
            } catch (RuntimeException notAnAssignment) {
                client.owned.clear();
            }
        }
    }

    private void heartbeat(JsonNode op, Client client) {
        short version = Player.version(op);
        HeartbeatRequestData request = new HeartbeatRequestData().setGroupId(op.get("group").asText())
            .setMemberId(player.member(op, "member", client)).setGroupInstanceId(Player.text(op, "instance"))
            .setGenerationId(Player.epoch(op, client));
        int ticket = player.trace.request(request, version, client.name);
        RequestContext context = Player.context(ApiKeys.HEARTBEAT, version, client.name);
        HeartbeatResponseData refusal = player.service.refusal(service -> service.heartbeat(context, request));
        if (refusal != null) {
            player.trace.reply(ticket, refusal, version);
            return;
        }
        player.carryOut(ticket, version,
            () -> player.kafka.shard.classicGroupHeartbeat(context, request),
            data -> data,
            (error, message) -> {
                if (error == Errors.UNKNOWN_MEMBER_ID) {
                    client.forget();
                }
                return new HeartbeatResponseData().setErrorCode(error.code());
            });
    }

    private void leave(JsonNode op, Client client) {
        short version = Player.version(op);
        List<MemberIdentity> leaving = new ArrayList<>();
        for (JsonNode member : op.get("members")) {
            leaving.add(new MemberIdentity().setMemberId(player.member(member, "member", client))
                .setGroupInstanceId(Player.text(member, "instance"))
                .setReason(version < 5 ? null : Player.text(member, "reason")));
        }
        LeaveGroupRequestData request = new LeaveGroupRequestData().setGroupId(op.get("group").asText());
        LeaveGroupRequestData sent = request.duplicate();
        request.setMembers(leaving);
        if (version < 3) {
            leaving.get(0).setGroupInstanceId(null);
            request.setMembers(leaving.subList(0, 1));
            sent.setMemberId(leaving.get(0).memberId());
        } else {
            sent.setMembers(leaving);
        }
        int ticket = player.trace.request(sent, version, client.name);
        RequestContext context = Player.context(ApiKeys.LEAVE_GROUP, version, client.name);
        LeaveGroupResponseData refusal = player.service.refusal(service -> service.leaveGroup(context, request));
        if (refusal != null) {
            player.trace.reply(ticket, new LeaveGroupResponse(refusal, version).data(), version);
            return;
        }
        player.carryOut(ticket, version,
            () -> player.kafka.shard.classicGroupLeave(context, request),
            data -> new LeaveGroupResponse(data, version).data(),
            (error, message) -> new LeaveGroupResponse(refusedLeave(request, error), version).data());
        client.forget();
    }

    private static LeaveGroupResponseData refusedLeave(LeaveGroupRequestData request, Errors error) {
        LeaveGroupResponseData reply = new LeaveGroupResponseData();
        if (error != Errors.UNKNOWN_MEMBER_ID) {
            return reply.setErrorCode(error.code());
        }
        return reply.setMembers(request.members().stream().map(member -> new LeaveGroupResponseData.MemberResponse()
            .setMemberId(member.memberId()).setGroupInstanceId(member.groupInstanceId())
            .setErrorCode(error.code())).toList());
    }
}
