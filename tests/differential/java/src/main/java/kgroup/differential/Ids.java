package kgroup.differential;

import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;

/**
 * Makes every id that Kafka draws depend on the seed alone, through Java's own provider of randomness.
 *
 * A classic group keeps its members in a HashMap. Ids are drawn so that the map's order is the order in which they
 * were made: then what Kafka leaves to the map, such as who leads next, is what our coordinator does as well.
 */
public final class Ids extends SecureRandomSpi {
    private static final long serialVersionUID = 1L;
    private static final int SLOTS = 16;
    private static Random random = new Random(0);
    private static String prefix;
    private static int slot;
    private static final List<String> DRAWN = new ArrayList<>();

    /** Has to be called before the first id is drawn. */
    static void install() {
        Provider seeded = new Provider("seeded", "1", "ids that a seed decides") {
            private static final long serialVersionUID = 1L;
        };
        seeded.put("SecureRandom.seeded", Ids.class.getName());
        Security.insertProviderAt(seeded, 1);
    }

    static void seed(long seed) {
        random = new Random(seed);
        slot = 0;
    }

    /** The id drawn next, if one is, begins with this and a dash; null for an id of its own. */
    static void next(String begin) {
        prefix = begin;
    }

    @Override
    protected void engineNextBytes(byte[] bytes) {
        random.nextBytes(bytes);
        if (bytes.length != SLOTS) {
            return;
        }
        if (prefix != null) {
            while (slotOf(prefix + "-" + uuid(bytes)) != slot % SLOTS) {
                random.nextBytes(bytes);
            }
            slot++;
        }
        DRAWN.add(uuid(bytes).toString());
    }

    /** The uuids drawn since this was asked last. */
    static List<String> drawn() {
        List<String> drawn = List.copyOf(DRAWN);
        DRAWN.clear();
        return drawn;
    }

    private static int slotOf(String id) {
        int hash = id.hashCode();
        return (hash ^ hash >>> 16) & SLOTS - 1;
    }

    private static UUID uuid(byte[] bytes) {
        long most = 0;
        long least = 0;
        for (int i = 0; i < 8; i++) {
            most = most << 8 | bytes[i] & 0xff;
            least = least << 8 | bytes[i + 8] & 0xff;
        }
        return new UUID(most & ~0xf000L | 0x4000L, least & 0x3fffffffffffffffL | 0x8000000000000000L);
    }

    @Override
    protected void engineSetSeed(byte[] seed) {
        // The program's seed decides.
    }

    @Override
    protected byte[] engineGenerateSeed(int count) {
        return new byte[count];
    }
}
