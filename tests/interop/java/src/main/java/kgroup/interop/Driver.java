package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The driver of foreign/java, with the clients of Kafka 4.3.1 and what they alone have; and transactions. */
public final class Driver extends kgroup.foreign.Driver {
    private final Map<String, AdminOps> admins = new ConcurrentHashMap<>();
    private final Transactions transactions = new Transactions();
    private final ShareMembers shareMembers = new ShareMembers();

    private Driver() {}

    public static void main(String[] args) throws Exception {
        new Driver().serve();
    }

    @Override
    protected Object run(String op, JsonNode request) throws Exception {
        if (op.startsWith("tx.")) {
            String member = request.path("member").asText();
            return transactions.run(op, request, op.equals("tx.copy") ? (Member) member(member) : null);
        }
        if (op.startsWith("share.")) {
            return shareMembers.run(op, request);
        }
        if (AdminOps.OPERATIONS.contains(op)) {
            return admins.computeIfAbsent(request.get("bootstrap").asText(), AdminOps::new).run(op, request);
        }
        if (op.equals("heard")) {
            return ((Member) member(request.get("name").asText())).heard();
        }
        if (op.equals("freeze")) {
            long ms = 1000 * request.get("seconds").asLong();
            return member(request.get("name").asText()).ask(() -> {
                Thread.sleep(ms);
                return null;
            });
        }
        return super.run(op, request);
    }

    @Override
    protected Member made() {
        return new Member();
    }
}
