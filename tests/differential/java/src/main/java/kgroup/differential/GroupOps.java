package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.function.Supplier;
import org.apache.kafka.common.message.ConsumerGroupDescribeRequestData;
import org.apache.kafka.common.message.ConsumerGroupDescribeResponseData;
import org.apache.kafka.common.message.DeleteGroupsRequestData;
import org.apache.kafka.common.message.DeleteGroupsResponseData;
import org.apache.kafka.common.message.DescribeGroupsRequestData;
import org.apache.kafka.common.message.DescribeGroupsResponseData;
import org.apache.kafka.common.message.ListGroupsRequestData;
import org.apache.kafka.common.message.ListGroupsResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;

/** What an operator asks: groups deleted, listed, described. */
final class GroupOps {
    private final Player player;

    GroupOps(Player player) {
        this.player = player;
    }

    void play(JsonNode op) {
        switch (op.get("do").asText()) {
            case "delete_groups" -> delete(op);
            case "list" -> list(op);
            case "describe" -> describe(op);
            default -> describeConsumer(op);
        }
    }

    private void delete(JsonNode op) {
        short version = 2;
        List<String> ids = Player.texts(op.get("groups"));
        int ticket = player.trace.request(new DeleteGroupsRequestData().setGroupsNames(ids), version, "admin");
        List<String> distinct = List.copyOf(new LinkedHashSet<>(ids));
        player.carryOut(ticket, version,
            () -> player.kafka.shard.deleteGroups(Player.context(ApiKeys.DELETE_GROUPS, version, "admin"), distinct),
            results -> new DeleteGroupsResponseData().setResults(results),
            (error, message) -> {
                throw new IllegalStateException(message);
            });
    }

    private void list(JsonNode op) {
        short version = 5;
        List<String> states = Player.texts(op.path("states"));
        List<String> types = Player.texts(op.path("types"));
        ListGroupsRequestData request = new ListGroupsRequestData().setStatesFilter(states).setTypesFilter(types);
        read(player.trace.request(request, version, "admin"), version, () -> new ListGroupsResponseData().setGroups(
            player.kafka.shard.listGroups(states, types, player.kafka.committed())));
    }

    private void describe(JsonNode op) {
        short version = Player.version(op);
        List<String> ids = Player.texts(op.get("groups"));
        DescribeGroupsRequestData request = new DescribeGroupsRequestData().setGroups(ids);
        read(player.trace.request(request, version, "admin"), version, () -> new DescribeGroupsResponseData().setGroups(
            player.kafka.shard.describeGroups(Player.context(ApiKeys.DESCRIBE_GROUPS, version, "admin"), ids,
                player.kafka.committed())));
    }

    private void describeConsumer(JsonNode op) {
        short version = 1;
        List<String> ids = Player.texts(op.get("groups"));
        ConsumerGroupDescribeRequestData request = new ConsumerGroupDescribeRequestData().setGroupIds(ids);
        read(player.trace.request(request, version, "admin"), version, () -> new ConsumerGroupDescribeResponseData()
            .setGroups(player.kafka.shard.consumerGroupDescribe(ids, player.kafka.committed())));
    }

    private void read(int ticket, short version, Supplier<Message> answer) {
        player.carryOut(ticket, version, () -> new CoordinatorResult<>(List.of(), answer.get()), reply -> reply,
            (error, message) -> {
                throw new IllegalStateException(error + " " + message);
            });
    }
}
