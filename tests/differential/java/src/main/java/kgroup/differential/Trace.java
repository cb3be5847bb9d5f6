package kgroup.differential;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;

/** What happened, one JSON object an operation: the request, every reply it released, records, state and timers. */
final class Trace {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    private final StringBuilder lines = new StringBuilder();
    private ObjectNode event;
    private int tickets = 0;

    ObjectNode begin(String kind, long now) {
        event = JSON.createObjectNode();
        event.put("kind", kind).put("now", now);
        event.putArray("records");
        event.putArray("replies");
        event.putArray("assigned");
        return event;
    }

    void end(Supplier<ObjectNode> state) {
        Ids.drawn().forEach(event.putArray("drawn")::add);
        event.set("state", state.get());
        try {
            lines.append(JSON.writeValueAsString(event)).append('\n');
        } catch (JsonProcessingException impossible) {
            throw new IllegalStateException(impossible);
        }
        event = null;
    }

    void broken(JsonNode op, RuntimeException failed) {
        event = JSON.createObjectNode().put("kind", "broken").put("said", failed.toString());
        event.set("op", op);
        lines.append(event).append('\n');
    }

    String lines() {
        return lines.toString();
    }

    ObjectNode assignment() {
        return ((ArrayNode) event.get("assigned")).addObject();
    }

    /** Puts a request into the event, under a ticket of its own; afterwards it says what its bytes say. */
    int request(Message request, short version, String clientId) {
        byte[] bytes = Hex.bytes(MessageUtil.toByteBufferAccessor(request, version).buffer());
        request.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), version);
        event.put("request", Hex.of(bytes)).put("version", version).put("client", clientId);
        event.put("ticket", ++tickets);
        return tickets;
    }

    void reply(int ticket, Message reply, short version) {
        ObjectNode node = ((ArrayNode) event.get("replies")).addObject();
        node.put("ticket", ticket).put("reply", Hex.of(reply, version));
    }

    /** Has the answer of a request that may be parked written when it comes. */
    <T extends Message> void replyWhenDone(int ticket, CompletableFuture<T> answer, short version) {
        answer.whenComplete((reply, failed) -> reply(ticket, reply, version));
    }

    void failed(Errors error, Throwable cause) {
        event.put("error", error.code()).put("said", cause.getClass().getSimpleName() + ": " + cause.getMessage());
    }

    /** The record as a broker finds it in its log. */
    static CoordinatorRecord reread(CoordinatorRecord record) {
        byte[] value = record.value() == null ? null : SERDE.serializeValue(record);
        return SERDE.deserialize(ByteBuffer.wrap(SERDE.serializeKey(record)),
            value == null ? null : ByteBuffer.wrap(value));
    }

    void records(List<CoordinatorRecord> records) {
        ArrayNode list = (ArrayNode) event.get("records");
        for (CoordinatorRecord record : records) {
            list.addArray().add(Hex.of(SERDE.serializeKey(record)))
                .add(record.value() == null ? null : Hex.of(SERDE.serializeValue(record)));
        }
    }
}
