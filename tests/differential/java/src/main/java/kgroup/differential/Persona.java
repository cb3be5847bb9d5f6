package kgroup.differential;

import java.util.List;

/** How one client of a made-up program tends to behave. It is no part of the program: operations say all themselves. */
final class Persona {
    static final List<String> TOPICS = List.of("foo", "bar", "baz", "qux");
    private static final List<List<String>> PROTOCOLS = List.of(
        List.of("range"), List.of("range", "roundrobin"), List.of("roundrobin", "range"), List.of("range"),
        List.of("roundrobin"), List.of("sticky", "range"));

    final String name;
    final String group;
    final Dice dice;
    boolean consumer;
    String instance;
    String type;
    List<String> topics;
    List<String> protocols;
    String pattern;
    int subscriptionVersion;
    int session;
    int rebalance;
    int cut;
    boolean old;

    Persona(String name, String group, Dice dice, boolean consumer) {
        this.name = name;
        this.group = group;
        this.dice = dice;
        this.consumer = consumer;
        instance = dice.chance(0.35) ? "i" + dice.below(3) : null;
        type = dice.chance(0.06) ? dice.one("connect", "streams", "") : "consumer";
        session = dice.odd(0.06, dice.chance(0.04) ? dice.number(5_999, 6_000, 1_800_000, 1_800_001)
            : dice.number(10_000, 30_000, 45_000));
        rebalance = dice.odd(0.15, dice.number(5_000, 20_000, 60_000));
        old = dice.chance(0.15);
        cut = dice.chance(0.06) ? 1 + dice.below(9) : 0;
        subscriptionVersion = dice.number(0, 1, 2, 3, 3);
        pattern = null;
        reconsider();
    }

    /** Another subscription. */
    void reconsider() {
        topics = dice.some(TOPICS, 0.5);
        protocols = dice.chance(0.01) ? List.of() : dice.of(PROTOCOLS);
    }

    static String anyPattern(Dice dice) {
        return dice.chance(0.12) ? dice.one("[", "(a", "*", "a{2,1}") : dice.one("ba.*", "foo|qux", "f.*", "zzz", "", ".*");
    }
}
