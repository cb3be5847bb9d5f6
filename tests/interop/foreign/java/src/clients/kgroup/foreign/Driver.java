package kgroup.foreign;

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
 * Hosts the clients of one Kafka version, 2.3 or newer, and speaks JSON lines as described in
 * tests/interop/driver.py. Compiled with the oldest; what came later is in Late. kgroup.interop adds what
 * Kafka 4.3.1's alone have.
 */
public class Driver {
    static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Member> members = new ConcurrentHashMap<>();
    private final Map<String, AdminOps> admins = new ConcurrentHashMap<>();
    private final Map<String, ProducerOps> producers = new ConcurrentHashMap<>();
    private final ExecutorService workers = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "driver");
        thread.setDaemon(true);
        return thread;
    });

    protected Driver() {}

    public static void main(String[] args) throws Exception {
        new Driver().serve();
    }

    protected final void serve() throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            workers.execute(() -> answer(request, out));
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

    protected Object run(String op, JsonNode request) throws Exception {
        if (op.startsWith("admin.")) {
            return admins.computeIfAbsent(request.get("bootstrap").asText(), AdminOps::new).run(op, request);
        }
        if (op.startsWith("producer.")) {
            String bootstrap = request.get("bootstrap").asText();
            Member member = request.hasNonNull("member") ? member(request.get("member").asText()) : null;
            return producers.computeIfAbsent(bootstrap, ProducerOps::new).run(op, request, member);
        }
        if (op.equals("read")) {
            return Reader.read(request);
        }
        String name = request.get("name").asText();
        switch (op) {
            case "start":
                Member made = made();
                made.start(request);
                if (members.putIfAbsent(name, made) != null) {
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
            case "close":
                member(name).close(request.path("leave"));
                return members.remove(name) == null;
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    /** A member that has not started. */
    protected Member made() {
        return new Member();
    }

    protected final Member member(String name) {
        Member member = members.get(name);
        if (member == null) {
            throw new IllegalArgumentException("no member " + name);
        }
        return member;
    }
}
