package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Plays programs on Kafka's coordinator. Each line of standard input asks for one: `{"seed": 7, "length": 60}` makes it
 * up while it is played (with streams groups if it says `"streams": true`), `{"program": {...}}` plays what is given. The answer is the program and then its trace, a JSON
 * object a line, and an empty line.
 */
public final class Differential {
    private Differential() { }

    public static void main(String[] args) throws IOException {
        Ids.install();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false,
            StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = Trace.JSON.readTree(line);
            out.print(asked.has("program") ? replay(asked.get("program")) : invent(asked));
            out.print('\n');
            out.flush();
        }
    }

    private static String replay(JsonNode program) {
        Ids.seed(program.get("seed").asLong());
        Player player = new Player(program.get("setup"));
        for (JsonNode op : program.get("ops")) {
            if (!played(player, op)) {
                break;
            }
        }
        return program + "\n" + player.trace.lines();
    }

    /** Whether Kafka's machine survived it; what it failed at is the last line of the trace. */
    private static boolean played(Player player, JsonNode op) {
        try {
            player.play(op);
            return true;
        } catch (RuntimeException failed) {
            player.trace.broken(op, failed);
            return false;
        }
    }

    private static String invent(JsonNode asked) {
        long seed = asked.get("seed").asLong();
        Ids.seed(seed);
        Generator generator = new Generator(seed, asked.path("streams").asBoolean());
        ObjectNode program = Trace.JSON.createObjectNode();
        program.put("seed", seed).set("setup", generator.setup());
        Player player = new Player(program.get("setup"));
        ArrayNode ops = program.putArray("ops");
        boolean whole = true;
        for (int i = 0; whole && i < asked.get("length").asInt(); i++) {
            JsonNode op = generator.next(player);
            ops.add(op);
            whole = played(player, op);
        }
        return program + "\n" + player.trace.lines();
    }
}
