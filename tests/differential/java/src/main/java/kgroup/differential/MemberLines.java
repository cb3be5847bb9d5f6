package kgroup.differential;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/** Lines of a made-up program in which a member speaks, in either protocol. */
final class MemberLines {
    private final Dice dice;
    private final List<Persona> personas;
    private final boolean mixed;

    MemberLines(Dice dice, List<Persona> personas, boolean mixed) {
        this.dice = dice;
        this.personas = personas;
        this.mixed = mixed;
    }

    ObjectNode next(Player player, Persona persona) {
        Client client = player.client(persona.name);
        boolean forgets = false;
        if (mixed && dice.chance(0.04)) {
            persona.consumer = !persona.consumer;
            forgets = dice.chance(0.7);
        }
        if (forgets) {
            client.forget();
        }
        ObjectNode op = next(player, client, persona);
        return forgets ? op.put("forgets", true) : op;
    }

    private ObjectNode next(Player player, Client client, Persona persona) {
        if (dice.chance(0.04)) {
            persona.reconsider();
        }
        if (persona.consumer) {
            return consumer(client, persona);
        }
        if (client.memberId.isEmpty()) {
            return join(client, persona);
        }
        double roll = dice.below(100) / 100.0;
        if (roll < 0.35) {
            return join(client, persona);
        }
        if (roll < 0.65) {
            return sync(player, client, persona);
        }
        return roll < 0.92 ? heartbeat(persona) : leave(persona);
    }

    private ObjectNode line(String what, Persona persona) {
        return Generator.line(what).put("as", persona.name).put("group", persona.group);
    }

    /** Whose member id a request carries: nearly always the client's own. */
    private String whose(double strange) {
        return dice.chance(1 - strange) ? "own" : dice.one("bogus", "none", "of:" + dice.of(personas).name);
    }

    private String instance(Persona persona) {
        return dice.chance(0.93) ? persona.instance : dice.chance(0.03) ? "" : dice.one(null, "i0", "i1");
    }

    private ObjectNode join(Client client, Persona persona) {
        String instance = instance(persona);
        boolean anew = client.memberId.isEmpty() || persona.instance != null && dice.chance(0.3) || dice.chance(0.03);
        int version = instance != null ? dice.number(5, 7, 8, 9) : dice.number(3, 4, 5, 7, 9, 9);
        ObjectNode op = line("join", persona).put("version", version).put("member", anew ? "none" : whose(0.04));
        op.put("instance", instance).put("type", dice.chance(0.97) ? persona.type : dice.one("connect", "consumer"));
        op.put("session", dice.odd(0.01, persona.session)).put("rebalance", dice.odd(0.02, persona.rebalance));
        if (dice.chance(0.1)) {
            op.put("reason", "because");
        }
        ArrayNode protocols = op.putArray("protocols");
        boolean rack = dice.chance(0.2);
        boolean owned = dice.chance(0.7);
        for (String name : persona.protocols) {
            ObjectNode protocol = protocols.addObject().put("name", name);
            if (!persona.type.equals("consumer") && dice.chance(0.8)) {
                protocol.put("raw", "00ff");
                continue;
            }
            persona.topics.forEach(protocol.putArray("topics")::add);
            protocol.put("version", persona.subscriptionVersion).put("owned", owned);
            if (persona.cut > 0) {
                protocol.put("cut", persona.cut);
            }
            if (rack) {
                protocol.put("rack", "rack1");
            }
            if (dice.chance(0.03)) {
                protocol.put("user", "beef");
            }
        }
        return op;
    }

    private ObjectNode sync(Player player, Client client, Persona persona) {
        ObjectNode op = line("sync", persona).put("version", dice.number(3, 4, 5)).put("member", whose(0.03));
        op.put("instance", instance(persona));
        epoch(op, 0.93);
        op.put("type", dice.chance(0.9) ? persona.type : null);
        op.put("protocol", dice.chance(0.8) ? "own" : dice.chance(0.3) ? null : dice.one("range", "roundrobin", ""));
        if (client.leads()) {
            ArrayNode shares = op.putArray("shares");
            for (int i = 0; i < client.members.size(); i++) {
                share(player, shares, i, client.members.size());
            }
        }
        return op;
    }

    private void share(Player player, ArrayNode shares, int member, int members) {
        if (dice.chance(0.08)) {
            shares.addNull();
            return;
        }
        if (dice.chance(0.03)) {
            shares.add(dice.one("", "01", "0000"));
            return;
        }
        ArrayNode share = shares.addArray();
        player.topics.sizes().forEach((topic, size) -> {
            for (int number = member; number < size; number += members) {
                if (dice.chance(0.8)) {
                    share.addArray().add(topic).add(number);
                }
            }
        });
    }

    private ObjectNode heartbeat(Persona persona) {
        ObjectNode op = line("heartbeat", persona).put("version", 4).put("member", whose(0.03))
            .put("instance", instance(persona));
        epoch(op, 0.95);
        return op;
    }

    /** The client's own generation, the one beside it, or any. */
    private void epoch(ObjectNode op, double own) {
        ObjectNode epoch = op.putObject("epoch");
        if (dice.chance(own)) {
            epoch.put("own", 0);
        } else if (dice.chance(0.8)) {
            epoch.put("own", dice.number(-1, 1));
        } else {
            epoch.put("set", dice.odd(1, 0));
        }
    }

    private ObjectNode leave(Persona persona) {
        ObjectNode op = line("leave", persona).put("version", dice.chance(0.15) ? 2 : dice.number(3, 4, 5));
        ArrayNode leaving = op.putArray("members");
        leaving.addObject().put("member", persona.instance != null && dice.chance(0.4) ? "none" : "own")
            .put("instance", instance(persona)).put("reason", dice.one(null, "bye"));
        while (dice.chance(0.35)) {
            Persona other = dice.of(personas);
            leaving.addObject().put("member", dice.chance(0.2) ? "none" : dice.chance(0.1) ? "bogus" : "of:" + other.name)
                .put("instance", dice.chance(0.8) ? other.instance : null);
        }
        return op;
    }

    private ObjectNode consumer(Client client, Persona persona) {
        boolean fresh = client.memberId.isEmpty();
        boolean joins = fresh || client.epoch == 0 || dice.chance(0.04);
        int version = persona.old ? 0 : 1;
        ObjectNode op = line("consumer_heartbeat", persona).put("version", version);
        op.put("member", fresh ? persona.old ? "none" : "fresh" : whose(0.02));
        // Of a member id with another instance id Kafka keeps both for ever: no more than a few programs are about that.
        op.put("instance", dice.chance(0.985) ? persona.instance
            : dice.chance(0.9) ? null : dice.one("i0", "i1", ""));
        if (joins) {
            return joining(op, persona);
        }
        if (dice.chance(0.07)) {
            op.putObject("epoch").put("set", dice.odd(0.1, persona.instance != null && dice.chance(0.6) ? -2 : -1));
            return op;
        }
        ObjectNode epoch = op.putObject("epoch");
        if (dice.chance(0.05)) {
            epoch.put("last", true);
        } else {
            epoch.put("own", dice.chance(0.94) ? 0 : dice.number(-1, 1));
        }
        op.put("owned", dice.chance(0.7) ? "own" : dice.chance(0.2) ? "empty" : null);
        if (dice.chance(0.2)) {
            persona.topics.forEach(op.putArray("names")::add);
        }
        if (dice.chance(0.08) && !persona.old) {
            persona.pattern = Persona.anyPattern(dice);
            op.put("pattern", persona.pattern);
        }
        if (dice.chance(0.12)) {
            op.put("rebalance", dice.odd(0.1, persona.rebalance));
        }
        if (dice.chance(0.04)) {
            op.put("assignor", dice.one("uniform", "range", "other", ""));
        }
        return dice.chance(0.1) ? op.put("deaf", true) : op;
    }

    private ObjectNode joining(ObjectNode op, Persona persona) {
        op.putObject("epoch").put("set", 0);
        op.put("owned", dice.chance(0.99) ? "empty" : dice.one("own", null));
        op.put("rebalance", dice.odd(0.02, persona.rebalance));
        if (!persona.old && dice.chance(0.25)) {
            persona.pattern = Persona.anyPattern(dice);
        }
        boolean patternOnly = persona.pattern != null && !persona.old && dice.chance(0.6) || dice.chance(0.005);
        if (!patternOnly) {
            persona.topics.forEach(op.putArray("names")::add);
        }
        if (persona.pattern != null && !persona.old) {
            op.put("pattern", persona.pattern);
        }
        if (dice.chance(0.3)) {
            op.put("assignor", dice.one("uniform", "range"));
        }
        return dice.chance(0.2) ? op.put("rack", "rack1") : op;
    }
}
