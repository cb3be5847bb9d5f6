package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.apache.kafka.clients.consumer.internals.ShareAcquireMode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfigProvider;
import org.apache.kafka.server.share.acknowledge.ShareAcknowledgementBatch;
import org.apache.kafka.server.share.dlq.ShareGroupDLQManager;
import org.apache.kafka.server.share.dlq.ShareGroupDLQRecordParameter;
import org.apache.kafka.server.share.fetch.InFlightBatch;
import org.apache.kafka.server.share.fetch.InFlightState;
import org.apache.kafka.server.share.fetch.ShareAcquiredRecords;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.server.storage.log.FetchPartitionData;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.utils.Utils;

/**
 * Plays programs on Kafka's SharePartition, whose persister is Kafka's own share coordinator. Each line of standard input is a program,
 * `{"setup": {...}, "ops": [...]}`; the answer is a line, a list with what each operation did. SharePartition can be made in this package alone.
 */
public final class Player {
    static final ObjectMapper JSON = new ObjectMapper();
    static final String GROUP = "g";

    private final ObjectNode setup;
    private final Clock clock = new Clock();
    private final Coordinator coordinator;
    private final TopicIdPartition partition;
    private final List<String> letters = new ArrayList<>();
    private SharePartition share;

    private Player(ObjectNode setup) {
        this.setup = setup;
        this.coordinator = new Coordinator(clock, setup);
        this.partition = new TopicIdPartition(coordinator.topicId(), new TopicPartition("t", 0));
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode program = JSON.readTree(line);
            Player player = new Player((ObjectNode) program.get("setup"));
            ArrayNode trace = JSON.createArrayNode();
            try {
                program.get("ops").forEach(op -> trace.add(player.played(op)));
            } catch (RuntimeException crash) {
                trace.addObject().put("crash", crash.toString());
            }
            if (player.share != null) {
                player.share.markFenced();
                player.share.close();
            }
            out.print(trace + "\n");
            out.flush();
        }
    }

    private ObjectNode played(JsonNode op) {
        ObjectNode told = JSON.createObjectNode();
        String name = op.get("op").asText();
        if (op.has("fail")) {
            coordinator.failNext(Errors.valueOf(op.get("fail").asText()));
        }
        if (coordinator.knows(name)) {
            told.set("answer", coordinator.asked(name, op));
        } else {
            partitionAsked(name, op, told);
        }
        coordinator.failNext(Errors.NONE);
        told.set("records", coordinator.takeRecords());
        if (share != null) {
            told.set("state", state());
        }
        ArrayNode dead = told.putArray("letters");
        letters.forEach(dead::add);
        letters.clear();
        return told;
    }

    private void partitionAsked(String name, JsonNode op, ObjectNode told) {
        switch (name) {
            case "load" -> load(op, told);
            case "acquire" -> acquire(op, told);
            case "acknowledge" -> put(told, share.acknowledge(op.get("member").asText(), batches(op.get("batches"))));
            case "release" -> put(told, share.releaseAcquiredRecords(op.get("member").asText()));
            case "log_start" -> share.updateCacheAndOffsets(op.get("offset").asLong());
            case "wait" -> clock.advance(op.get("ms").asLong());
            default -> throw new IllegalArgumentException(name);
        }
    }

    private void load(JsonNode op, ObjectNode told) {
        if (share != null) {
            share.markFenced();
            share.close();
            // The tasks of a partition that is not led any more find nothing, and disturb nobody.
            clock.forgetAll();
        }
        Properties own = new Properties();
        setup.get("group").properties().forEach(entry -> own.put(entry.getKey(), entry.getValue().asText()));
        AbstractConfig all = new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), new Properties(), false);
        GroupConfigManager manager = new GroupConfigManager(new GroupCoordinatorConfig(all), new ShareGroupConfig(all));
        manager.updateGroupConfig(GROUP, own);
        share = new SharePartition(GROUP, partition, op.get("epoch").asInt(), 2000, 5, 30_000, clock, clock, coordinator.persister(),
            new Offsets(op), key -> { }, new ShareGroupConfigProvider(manager), null, () -> setup.get("dlq").asBoolean(), new Letters());
        put(told, share.maybeInitialize());
        if (told.has("error")) {
            share.close();
            share = null;
        }
    }

    private void acquire(JsonNode op, ObjectNode told) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(op.get("records").asText())));
        List<AbortedTransaction> aborted = new ArrayList<>();
        op.get("aborted").forEach(each ->
            aborted.add(new AbortedTransaction().setProducerId(each.get(0).asLong()).setFirstOffset(each.get(1).asLong())));
        FetchPartitionData data = new FetchPartitionData(Errors.NONE, 1L << 40, 0, records, Optional.empty(), OptionalLong.empty(),
            Optional.of(aborted), OptionalInt.empty(), false);
        ShareAcquiredRecords got = share.acquire(op.get("member").asText(), ShareAcquireMode.forId((byte) op.get("mode").asInt()),
            op.get("batch").asInt(), op.get("most").asInt(), op.get("offset").asLong(), data,
            op.get("committed").asBoolean() ? FetchIsolation.TXN_COMMITTED : FetchIsolation.HIGH_WATERMARK);
        ArrayNode acquired = told.putArray("acquired");
        got.acquiredRecords().forEach(each ->
            acquired.addArray().add(each.firstOffset()).add(each.lastOffset()).add(each.deliveryCount()));
        told.put("size", got.count());
    }

    private static List<ShareAcknowledgementBatch> batches(JsonNode given) {
        List<ShareAcknowledgementBatch> batches = new ArrayList<>();
        given.forEach(each -> {
            List<Byte> types = new ArrayList<>();
            each.get(2).forEach(type -> types.add((byte) type.asInt()));
            batches.add(new ShareAcknowledgementBatch(each.get(0).asLong(), each.get(1).asLong(), types));
        });
        return batches;
    }

    private static void put(ObjectNode told, CompletableFuture<Void> future) {
        try {
            future.join();
        } catch (CompletionException error) {
            Throwable cause = error.getCause();
            told.put("error", Errors.forException(cause).name());
            told.put("message", cause.getMessage());
        }
    }

    private ObjectNode state() {
        ObjectNode state = JSON.createObjectNode();
        state.put("start", share.startOffset());
        state.put("end", share.endOffset());
        state.put("complete", share.deliveryCompleteCount());
        state.put("can_acquire", share.canAcquireRecords());
        state.put("next", share.nextFetchOffset());
        ArrayNode batches = state.putArray("batches");
        for (InFlightBatch batch : share.cachedState().values()) {
            ArrayNode told = batches.addArray().add(batch.firstOffset()).add(batch.lastOffset());
            if (batch.offsetState() == null) {
                told.add(batch.batchState().name() + " " + batch.batchDeliveryCount() + " " + batch.batchMemberId());
            } else {
                ArrayNode each = told.addArray();
                for (InFlightState fate : batch.offsetState().values()) {
                    each.add(fate.state().name() + " " + fate.deliveryCount() + " " + fate.memberId());
                }
            }
        }
        return state;
    }

    /** Takes dead letters, and is done with them at once. */
    private final class Letters implements ShareGroupDLQManager {
        @Override
        public CompletableFuture<Void> enqueue(ShareGroupDLQRecordParameter given) {
            letters.add(given.firstOffset() + " " + given.lastOffset() + " " + given.deliveryCount().orElse((short) -1) + " "
                + given.cause().map(Throwable::getMessage).orElse(""));
            return CompletableFuture.completedFuture(null);
        }

        @Override
        public void stop() { }
    }
}
