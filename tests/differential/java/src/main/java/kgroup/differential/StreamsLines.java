package kgroup.differential;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** Lines of a made-up program in which a member of a streams group speaks. */
final class StreamsLines {
    private final Dice dice;
    private final ObjectNode usual;

    StreamsLines(Dice dice) {
        this.dice = dice;
        usual = topology();
    }

    ObjectNode next(Player player, Persona persona) {
        Client client = player.client(persona.name);
        ObjectNode op = Generator.line("streams_heartbeat").put("as", persona.name).put("group", persona.group);
        boolean joins = client.memberId.isEmpty() || client.epoch == 0 && dice.chance(0.9);
        op.put("member", client.memberId.isEmpty() || joins && dice.chance(0.15) ? "fresh"
            : dice.chance(0.96) ? "own" : dice.one("bogus", "of:c0", "of:c1", "none"));
        ObjectNode epoch = op.putObject("epoch");
        if (joins) {
            epoch.put("set", 0);
            join(op, persona);
            return op;
        }
        double roll = dice.below(100) / 100.0;
        if (roll < 0.85) {
            epoch.put("own", 0);
        } else if (roll < 0.90) {
            epoch.put("last", true);
        } else if (roll < 0.96) {
            epoch.put("set", dice.odd(0.1, Release.STATIC_STREAMS_MEMBERS && persona.instance != null
                ? dice.number(-1, -2, -2, 0) : dice.number(-1, -1, -1, -2, 0)));
            if (epoch.get("set").asInt() == 0 && dice.chance(0.8)) {
                join(op, persona);
            }
        } else {
            epoch.put("own", dice.number(-1, 1));
        }
        if (!op.has("owned") && dice.chance(0.6)) {
            op.put("owned", dice.chance(0.9) ? "own" : dice.one("none", "stranger", "odd", "warm"));
        }
        if (dice.chance(0.1)) {
            op.put("deaf", true);
        }
        odd(op, persona);
        return op;
    }

    private void join(ObjectNode op, Persona persona) {
        op.put("owned", dice.chance(0.97) ? "none" : "own");
        op.put("rebalance", dice.odd(0.03, persona.rebalance));
        op.put("process", dice.chance(0.98) ? "p" + (persona.name.charAt(1) - '0') / 2 : dice.one(null, ""));
        if (dice.chance(0.98)) {
            op.set("topology", dice.chance(0.92) ? usual : topology());
        }
        if (dice.chance(0.15)) {
            op.put("host", "h-" + persona.name);
        }
        if (dice.chance(0.3)) {
            op.put("rack", dice.one("r1", "r2"));
        }
        if (dice.chance(0.2)) {
            dice.some(java.util.List.of("zone", "cell"), 0.7).forEach(op.putArray("tags")::add);
        }
        odd(op, persona);
    }

    private void odd(ObjectNode op, Persona persona) {
        if (dice.chance(Release.STATIC_STREAMS_MEMBERS && persona.instance != null ? 0.97 : 0.02)) {
            op.put("instance", dice.chance(0.97) && persona.instance != null ? persona.instance
                : dice.one("i1", "i2", ""));
        }
        if (dice.chance(Release.STATIC_STREAMS_MEMBERS ? 0.15 : 0.01)) {
            op.put(dice.one("offsets", "ends"), dice.one("some", "many", "some", "twice"));
        }
        if (dice.chance(0.02)) {
            op.put("shutdown", true);
        }
        if (dice.chance(0.03)) {
            op.put("endpoints", dice.odd(0.7, 5));
        }
        if (dice.chance(0.02)) {
            op.put("rack", " ");
        }
    }

    private ObjectNode topology() {
        ObjectNode node = Trace.JSON.createObjectNode().put("epoch", dice.number(0, 0, 0, 1));
        ArrayNode parts = node.putArray("parts");
        ObjectNode first = parts.addObject().put("id", "0");
        first.putArray("sources").add(dice.one("foo", "foo", "bar"));
        if (dice.chance(0.7)) {
            info(first.withArray("changelogs"), "app-counts-changelog", dice.chance(0.02) ? 3 : 0);
        }
        if (dice.chance(0.6)) {
            first.putArray("sinks").add("app-by-user-repartition");
            ObjectNode second = parts.addObject().put("id", "1");
            info(second.withArray("repartition"), "app-by-user-repartition", dice.chance(0.25) ? 2 : 0);
            if (dice.chance(0.5)) {
                second.putArray("sources").add(dice.one("bar", "baz", "qux"));
                ObjectNode together = second.withArray("together").addObject();
                together.putArray("sources").add(0);
                together.putArray("repartition").add(0);
            }
            if (dice.chance(0.6)) {
                info(second.withArray("changelogs"), "app-joined-changelog", 0);
            }
            if (dice.chance(0.3)) {
                second.putArray("sinks").add(dice.chance(0.9) ? "app-again-repartition" : "app-by-user-repartition");
                ObjectNode third = parts.addObject().put("id", "2");
                info(third.withArray("repartition"), "app-again-repartition", 0);
            }
        }
        if (dice.chance(0.05)) {
            info(parts.addObject().put("id", "3").withArray("repartition"), "app-nowhere-repartition", 0);
        }
        return node;
    }

    private void info(ArrayNode list, String name, int partitions) {
        list.addObject().put("name", name).put("partitions", partitions).put("replicas", dice.number(0, 0, 1));
    }

    /** Creates what a group missed, nearly always as it was asked for. */
    ObjectNode create(Player player) {
        String name = dice.of(java.util.List.copyOf(player.streams.missing.keySet()));
        int partitions = player.streams.missing.get(name) + (dice.chance(0.05) ? 1 : 0);
        return Generator.line("topic").put("change", "create").put("name", name).put("partitions", partitions);
    }
}
