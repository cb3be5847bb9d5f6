package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorOperationExceptionHelper;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard.DeletedTopic;
import org.slf4j.helpers.NOPLogger;

/** Plays a program's operations on Kafka's coordinator, one at a time, and writes the trace. */
final class Player {
    final Trace trace = new Trace();
    final Topics topics;
    final Kafka kafka;
    final Service service;
    States states;
    final Map<String, Client> clients = new TreeMap<>();
    private final ClassicOps classic;
    private final ConsumerOps consumer;
    final StreamsOps streams;
    private final OffsetOps offsets;
    private final GroupOps groups;

    Player(JsonNode setup) {
        topics = new Topics(setup.get("topics"), setup.path("racks").asBoolean());
        kafka = new Kafka(setup.get("config"), topics, trace);
        service = new Service(kafka.config);
        states = new States(kafka.shard, kafka.timers);
        classic = new ClassicOps(this);
        consumer = new ConsumerOps(this);
        streams = new StreamsOps(this);
        offsets = new OffsetOps(this);
        groups = new GroupOps(this);
        ObjectNode start = trace.begin("start", kafka.time.milliseconds());
        start.put("kafka", Release.VERSION).set("setup", setup);
        start.set("image", topics.json());
        trace.end(this::state);
    }

    private ObjectNode state() {
        return states.json();
    }

    Client client(String name) {
        return clients.computeIfAbsent(name, Client::new);
    }

    /** The member id an operation names: its client's own, another's ("of:c1"), none, or what it says. */
    String member(JsonNode op, String field, Client own) {
        String named = op.path(field).asText("own");
        if (named.startsWith("of:")) {
            return client(named.substring(3)).memberId;
        }
        return switch (named) {
            case "own" -> own.memberId;
            case "none" -> "";
            default -> named;
        };
    }

    void play(JsonNode op) {
        String what = op.get("do").asText();
        ObjectNode event = trace.begin(what, kafka.time.milliseconds());
        event.set("op", op);
        if (op.path("forgets").asBoolean()) {
            client(op.get("as").asText()).forget();
        }
        switch (what) {
            case "join", "sync", "heartbeat", "leave" -> classic.play(op);
            case "consumer_heartbeat" -> consumer.heartbeat(op);
            case "streams_heartbeat", "streams_describe" -> streams.play(op);
            case "commit", "txn_commit", "end_txn", "fetch", "offset_delete" -> offsets.play(op);
            case "delete_groups", "list", "describe", "consumer_describe" -> groups.play(op);
            case "topic" -> changeTopics(op, event);
            case "config" -> kafka.configure(op.get("group").asText(), op.get("settings"));
            case "assignor" -> kafka.assignors.forEach(spy -> spy.failing = op.get("fails").asBoolean());
            case "restart" -> {
                topics.seenAnew();
                event.set("image", topics.json());
                kafka.load(topics);
                states = new States(kafka.shard, kafka.timers);
            }
            case "tasks", "advance", "until" -> {
                passTime(op, what);
                return;
            }
            default -> throw new IllegalArgumentException(what);
        }
        trace.end(this::state);
    }

    private void passTime(JsonNode op, String what) {
        long until = kafka.time.milliseconds();
        if (what.equals("advance")) {
            until += op.get("ms").asLong();
        } else if (what.equals("until")) {
            List<Timers.Armed> due = new ArrayList<>(kafka.timers.all().values());
            due.removeIf(timer -> timer.key().equals("group-size-counter"));
            due.sort(Comparator.comparingLong(Timers.Armed::deadlineMs).thenComparing(Timers.Armed::key));
            if (!due.isEmpty()) {
                long deadline = due.get(op.get("timer").asInt() % due.size()).deadlineMs();
                until = Math.max(until, deadline + op.get("by").asLong());
            }
        }
        if (what.equals("tasks")) {
            kafka.runTasks(this::state);
        } else {
            kafka.advanceTo(until, this::state);
        }
        trace.begin(what.equals("tasks") ? what : "advanced", kafka.time.milliseconds()).set("op", op);
        trace.end(this::state);
    }

    private void changeTopics(JsonNode op, ObjectNode event) {
        String name = op.get("name").asText();
        Uuid id = topics.id(name);
        CoordinatorMetadataDelta delta = topics.change(op);
        if (delta != null) {
            kafka.shard.onMetadataUpdate(delta, topics.wrapped());
            if (op.get("change").asText().equals("delete")) {
                kafka.write(() -> kafka.shard.onTopicsDeleted(List.of(new DeletedTopic(id, name))));
            }
        }
        event.set("image", topics.json());
    }

    /** What the broker's service and runtime do around an operation: its reply, or the one its failure is told with. */
    <T> void carryOut(int ticket, short version, Supplier<CoordinatorResult<T, CoordinatorRecord>> operation,
                      Function<T, Message> reply, BiFunction<Errors, String, Message> refused) {
        carryOut(ticket, version, -1L, operation, reply, refused);
    }

    <T> void carryOut(int ticket, short version, long producer,
                      Supplier<CoordinatorResult<T, CoordinatorRecord>> operation,
                      Function<T, Message> reply, BiFunction<Errors, String, Message> refused) {
        Message answer;
        try {
            answer = reply.apply(kafka.write(producer, operation));
        } catch (RuntimeException failed) {
            trace.failed(Errors.forException(failed), failed);
            answer = CoordinatorOperationExceptionHelper.handleOperationException(
                "", "", failed, refused, NOPLogger.NOP_LOGGER);
        }
        if (answer != null) {
            trace.reply(ticket, answer, version);
        }
    }

    /** The epoch an operation names: one that is set, its client's own and a step from it, or the one before. */
    static int epoch(JsonNode op, Client client) {
        JsonNode epoch = op.get("epoch");
        return epoch.has("set") ? epoch.get("set").asInt()
            : epoch.has("last") ? client.lastEpoch : client.epoch + epoch.path("own").asInt();
    }

    static RequestContext context(ApiKeys api, short version, String clientId) {
        return new RequestContext(new RequestHeader(api, version, clientId, 0), "1", InetAddress.getLoopbackAddress(),
            KafkaPrincipal.ANONYMOUS, ListenerName.forSecurityProtocol(SecurityProtocol.PLAINTEXT),
            SecurityProtocol.PLAINTEXT, ClientInformation.EMPTY, false);
    }

    static String text(JsonNode op, String field) {
        JsonNode value = op.path(field);
        return value.isNull() || value.isMissingNode() ? null : value.asText();
    }

    static short version(JsonNode op) {
        return (short) op.get("version").asInt();
    }

    static List<String> texts(JsonNode list) {
        List<String> texts = new ArrayList<>();
        list.forEach(text -> texts.add(text.asText()));
        return texts;
    }
}
