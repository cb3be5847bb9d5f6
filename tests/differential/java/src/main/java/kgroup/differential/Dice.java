package kgroup.differential;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Choices that a seed decides. */
final class Dice {
    private final Random random;

    Dice(long seed) {
        random = new Random(seed);
    }

    boolean chance(double share) {
        return random.nextDouble() < share;
    }

    int below(int bound) {
        return random.nextInt(bound);
    }

    @SafeVarargs
    final <T> T one(T... of) {
        return of[random.nextInt(of.length)];
    }

    <T> T of(List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    int number(int... of) {
        return of[random.nextInt(of.length)];
    }

    /** One of the usual numbers, or now and then one that nobody expects. */
    int odd(double share, int usual) {
        return chance(share) ? number(0, 1, -1, -2, 2, Integer.MIN_VALUE, Integer.MAX_VALUE) : usual;
    }

    /** Each with the same chance, in order. */
    <T> List<T> some(List<T> list, double share) {
        List<T> taken = new ArrayList<>();
        for (T one : list) {
            if (chance(share)) {
                taken.add(one);
            }
        }
        return taken;
    }
}
