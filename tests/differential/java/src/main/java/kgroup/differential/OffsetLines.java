package kgroup.differential;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** Lines of a made-up program that commit, fetch or delete offsets. */
final class OffsetLines {
    private static final int FIRST_PRODUCER = 5;
    private final Dice dice;
    private final List<Persona> personas;

    OffsetLines(Dice dice, List<Persona> personas) {
        this.dice = dice;
        this.personas = personas;
    }

    ObjectNode next(Player player, Persona persona) {
        double roll = dice.below(100) / 100.0;
        if (roll < 0.45) {
            return commit(player, persona);
        }
        if (roll < 0.60) {
            return transactional(player, persona);
        }
        if (roll < 0.70) {
            return Generator.line("end_txn").put("producer", FIRST_PRODUCER + dice.below(3))
                .put("commit", dice.chance(0.6));
        }
        return roll < 0.88 ? fetch(player, persona) : delete(player);
    }

    private ObjectNode speaker(ObjectNode op, Persona persona, double nobody) {
        op.put("as", persona.name).put("group", persona.group);
        ObjectNode epoch = op.putObject("epoch");
        if (dice.chance(nobody)) {
            epoch.put("set", -1);
            return op.put("member", dice.chance(0.8) ? "none" : "own").put("instance", (String) null);
        }
        if (dice.chance(0.04)) {
            epoch.put("set", dice.odd(1, 0));
        } else {
            epoch.put("own", dice.chance(0.7) ? 0 : dice.number(-1, -2, 1));
        }
        return op.put("member", dice.chance(0.95) ? "own" : dice.one("bogus", "none"))
            .put("instance", dice.chance(0.8) ? persona.instance : null);
    }

    private ArrayNode parts(ObjectNode op, Player player, double share) {
        ArrayNode parts = op.putArray("parts");
        player.topics.sizes().forEach((topic, size) -> {
            for (int number = 0; number < size; number++) {
                if (dice.chance(share)) {
                    part(parts, topic, number);
                }
            }
        });
        if (dice.chance(0.15)) {
            String topic = dice.chance(0.4) ? "nowhere" : dice.of(Persona.TOPICS);
            if (dice.chance(0.3)) {
                parts.addArray().add(topic).addNull();
            } else {
                part(parts, topic, dice.odd(0.6, 0));
            }
        }
        return parts;
    }

    private void part(ArrayNode parts, String topic, int number) {
        long offset = dice.chance(0.97) ? dice.below(100) : dice.one(-1L, -2L, Long.MIN_VALUE, Long.MAX_VALUE);
        parts.addArray().add(topic).add(number).add(offset).add(dice.odd(0.02, dice.below(3) - 1)).add(metadata());
    }

    private String metadata() {
        if (dice.chance(0.85)) {
            return dice.one("m", "", null);
        }
        String unit = dice.one("x", "é", "\uD83D\uDE00");
        int most = 50 / unit.length();
        return unit.repeat(Math.max(0, most - 1 + dice.below(3)));
    }

    private ObjectNode commit(Player player, Persona persona) {
        int version = dice.chance(0.1) ? dice.number(2, 3, 4) : dice.number(7, 8, 9, 10, 10);
        ObjectNode op = speaker(Generator.line("commit").put("version", version), persona, 0.25);
        if (version < 5 && dice.chance(0.6)) {
            op.put("retention", dice.chance(0.9) ? dice.number(1000, 60_000)
                : dice.one(0L, 1L, -1L, -2L, Long.MIN_VALUE, Long.MAX_VALUE));
        }
        parts(op, player, 0.3);
        return op;
    }

    private ObjectNode transactional(Player player, Persona persona) {
        ObjectNode op = speaker(Generator.line("txn_commit").put("version", dice.number(3, 4, 5, Release.TXN_OFFSET_COMMIT)), persona, 0.5);
        parts(op.put("producer", FIRST_PRODUCER + dice.below(3)), player, 0.2);
        return op;
    }

    private ObjectNode fetch(Player player, Persona persona) {
        ObjectNode op = speaker(Generator.line("fetch").put("version", dice.number(8, 9, 9, 10)), persona, 0.4);
        if (dice.chance(0.6)) {
            op.putNull("member");
        }
        if (dice.chance(0.5)) {
            parts(op, player, 0.4);
        }
        if (dice.chance(0.1)) {
            op.putArray("also").add(dice.one("g", "g", "h", "nowhere", ""));
        }
        return op.put("stable", dice.chance(0.5));
    }

    private ObjectNode delete(Player player) {
        ObjectNode op = Generator.line("offset_delete").put("group", dice.chance(0.9) ? "g" : dice.one("h", "nowhere"));
        parts(op, player, 0.3);
        return op;
    }
}
