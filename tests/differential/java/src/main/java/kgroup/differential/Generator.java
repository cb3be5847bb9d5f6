package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;

/** Makes a program up while it is played: what clients do next depends on what they were told. */
final class Generator {
    private static final String GROUP = "g";
    private final Dice dice;
    private final List<Persona> personas = new ArrayList<>();
    private final MemberLines members;
    private final OffsetLines offsets;
    private final StreamsLines streams;

    Generator(long seed, boolean withStreams) {
        dice = new Dice(seed * 0x9E3779B97F4A7C15L);
        int mode = (int) (seed % 4);
        int clients = 2 + dice.below(5);
        for (int i = 0; i < clients; i++) {
            boolean consumer = mode == 1 || mode > 1 && dice.chance(0.5);
            personas.add(new Persona("c" + i, dice.chance(0.1) ? "h" : GROUP, dice, consumer));
        }
        members = new MemberLines(dice, personas, mode > 1);
        offsets = new OffsetLines(dice, personas);
        streams = withStreams ? new StreamsLines(dice) : null;
    }

    ObjectNode setup() {
        ObjectNode setup = Trace.JSON.createObjectNode();
        ObjectNode topics = setup.putObject("topics");
        for (String name : Persona.TOPICS.subList(0, 3)) {
            topics.put(name, 1 + dice.below(4));
        }
        setup.put("racks", dice.chance(0.3));
        ObjectNode config = setup.putObject("config");
        setting(config, 0.4, "group.consumer.migration.policy", "bidirectional", "upgrade", "downgrade", "disabled");
        setting(config, 0.2, "group.max.size", "1", "2", "3", "4");
        setting(config, 0.2, "group.consumer.max.size", "1", "2", "3", "4");
        setting(config, 0.7, "group.initial.rebalance.delay.ms",
            "0", "0", "500", "400000", "-1", "-2147483648", "2147483647");
        setting(config, 0.15, "group.min.session.timeout.ms", "0", "1", "-2147483648");
        setting(config, 0.15, "group.max.session.timeout.ms", "2147483647");
        setting(config, 0.6, "group.consumer.assignment.interval.ms", "0", "0", "3000");
        setting(config, 1, "offset.metadata.max.bytes", "50", "50", "50", "50", "50", "0", "-1");
        setting(config, 1, "offsets.retention.minutes", "1", "2", "10");
        setting(config, 1, "offsets.retention.check.interval.ms", "30000", "600000");
        setting(config, 0.3, "group.consumer.regex.refresh.interval.ms", "10000", "60000");
        if (streams != null) {
            setting(config, 0.2, "group.streams.max.size", "1", "2", "3");
            setting(config, 0.7, "group.streams.initial.rebalance.delay.ms", "0", "0", "500");
            setting(config, 0.6, "group.streams.assignment.interval.ms", "0", "0", "3000");
            setting(config, 0.5, "group.streams.num.standby.replicas", "0", "1", "2");
            if (Release.STATIC_STREAMS_MEMBERS) {
                // Kafka 4.4.0 makes no warm-ups yet, but keeps what would be refined to them, at times too long.
                config.put("group.streams.num.warmup.replicas", "2");
            }
        }
        return setup;
    }

    private void setting(ObjectNode config, double share, String name, String... values) {
        if (dice.chance(share)) {
            config.put(name, dice.one(values));
        }
    }

    JsonNode next(Player player) {
        Persona persona = dice.of(personas);
        double roll = dice.below(1000) / 1000.0;
        if (roll < 0.60) {
            return streams != null && dice.chance(0.96) ? streams.next(player, persona)
                : members.next(player, persona);
        }
        if (streams != null && roll < 0.70 && !player.streams.missing.isEmpty()) {
            return streams.create(player);
        }
        if (roll < 0.79) {
            return time();
        }
        if (roll < 0.93) {
            return offsets.next(player, persona);
        }
        return roll < 0.965 ? cluster(player) : probe();
    }

    private ObjectNode time() {
        if (dice.chance(0.15)) {
            return line("tasks");
        }
        if (dice.chance(0.45)) {
            return line("until").put("timer", dice.chance(0.7) ? 0 : dice.below(6)).put("by", dice.below(3) - 1);
        }
        return line("advance").put("ms", dice.number(0, 1, 100, 1000, 2999, 3000, 6000, 15_000, dice.chance(0.2) ? 70_000 : 500,
            dice.chance(0.1) ? 700_000 : 9_999));
    }

    private ObjectNode cluster(Player player) {
        if (dice.chance(0.7)) {
            String name = dice.of(Persona.TOPICS);
            boolean exists = player.topics.sizes().containsKey(name);
            return line("topic").put("change", exists ? dice.one("grow", "delete") : "create").put("name", name)
                .put("partitions", 1 + dice.below(3));
        }
        if (dice.chance(0.4)) {
            return line("restart");
        }
        if (dice.chance(0.3)) {
            return line("assignor").put("fails", dice.chance(0.4));
        }
        ObjectNode op = line("config").put("group", GROUP);
        ObjectNode settings = op.putObject("settings");
        if (streams != null) {
            setting(settings, 0.5, "streams.num.standby.replicas", "0", "1", "2", "2147483647");
            setting(settings, 0.5, "streams.session.timeout.ms", "45000", "60000", "1", "2147483647");
            setting(settings, 0.5, "streams.heartbeat.interval.ms", "5000", "10000", "1", "2147483647");
            setting(settings, 0.5, "streams.assignment.interval.ms", "0", "1000", "10000", "2147483647");
            setting(settings, 0.5, "streams.initial.rebalance.delay.ms", "0", "1000", "2147483647");
            if (Release.STATIC_STREAMS_MEMBERS) {
                setting(settings, 0.4, "streams.rack.aware.assignment.tags", "", "zone", "cell , zone", "zone,rack");
                setting(settings, 0.2, "streams.assignor.name", "sticky");
            }
            return op;
        }
        // Out of bounds they are, at times, by a broker's settings that changed since: then they are held within.
        setting(settings, 0.5, "consumer.session.timeout.ms", "45000", "50000", "60000", "1", "2147483647");
        setting(settings, 0.5, "consumer.heartbeat.interval.ms", "5000", "10000", "15000", "1", "2147483647");
        setting(settings, 0.5, "consumer.assignment.interval.ms", "0", "1000", "10000", "2147483647");
        return op;
    }

    private ObjectNode probe() {
        String group = dice.chance(0.9) ? GROUP : dice.one("h", "nowhere");
        ObjectNode op = line(streams != null && dice.chance(0.5) ? "streams_describe"
            : dice.one("list", "describe", "consumer_describe", "delete_groups"));
        op.putArray("groups").add(group);
        if (dice.chance(0.1)) {
            op.withArray("groups").add(dice.one("nowhere", "h", "g"));
        }
        op.put("version", dice.number(5, 6));
        if (dice.chance(0.3)) {
            op.putArray("states").add(dice.one("Empty", "stable", "PreparingRebalance", "Dead", "Reconciling"));
        }
        if (dice.chance(0.3)) {
            op.putArray("types").add(dice.one("classic", "Consumer"));
        }
        return op;
    }

    static ObjectNode line(String what) {
        return Trace.JSON.createObjectNode().put("do", what);
    }
}
