package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Hosts many Kafka clients in one JVM and speaks JSON lines: {"id", "op", ...} in,
 * {"id", "result"} or {"id", "error", "message"} out, in the order the operations end.
 * Errors carry Kafka's own code names (FENCED_INSTANCE_ID). End of input closes everything.
 */
public final class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Member> members = new ConcurrentHashMap<>();
    private final Map<String, AdminOps> admins = new ConcurrentHashMap<>();
    private final Transactions transactions = new Transactions();
    private final ExecutorService workers = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "driver");
        thread.setDaemon(true);
        return thread;
    });

    private Driver() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Driver driver = new Driver();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            driver.workers.execute(() -> driver.answer(request, out));
        }
        System.exit(0);
    }

    private void answer(JsonNode request, PrintStream out) {
        ObjectNode reply = JSON.createObjectNode().put("id", request.get("id").asLong());
        try {
            reply.set("result", JSON.valueToTree(run(request.get("op").asText(), request)));
        } catch (Throwable failure) {
            Throwable cause = Failure.cause(failure);
            reply.put("error", Failure.code(cause)).put("message", String.valueOf(cause));
        }
        synchronized (out) {
            out.println(reply);
            out.flush();
        }
    }

    private Object run(String op, JsonNode request) throws Exception {
        if (op.startsWith("tx.")) {
            String member = request.path("member").asText();
            return transactions.run(op, request, op.equals("tx.copy") ? member(member) : null);
        }
        if (op.startsWith("admin.")) {
            return admins.computeIfAbsent(request.get("bootstrap").asText(), AdminOps::new).run(op, request);
        }
        String name = request.get("name").asText();
        switch (op) {
            case "start":
                if (members.putIfAbsent(name, new Member(request)) != null) {
                    throw new IllegalArgumentException("there is a member " + name);
                }
                return null;
            case "state":
                return member(name).state();
            case "records":
                return member(name).records();
            case "commit":
                return member(name).commit(request.path("offsets"));
            case "committed":
                return member(name).committed(request.get("partitions"));
            case "freeze":
                long ms = 1000 * request.get("seconds").asLong();
                return member(name).ask(() -> {
                    Thread.sleep(ms);
                    return null;
                });
            case "close":
                member(name).close(request.path("leave"));
                return members.remove(name) == null;
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    private Member member(String name) {
        Member member = members.get(name);
        if (member == null) {
            throw new IllegalArgumentException("no member " + name);
        }
        return member;
    }
}
