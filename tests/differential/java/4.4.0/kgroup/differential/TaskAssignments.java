package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TaskAssignorException;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/**
 * Kafka's sticky task assignor, asked directly. Each line of standard input is a group: `{"members": [{"id",
 * "process", "active", "standby", "warmup"}], "subtopologies": [{"id", "tasks", "stateful"}], "standbys": 1}`, tasks as
 * `{"0": [1, 2]}`. The answer is a line: tasks by member, in the same shape, or `{"error": why}`.
 */
public final class TaskAssignments {
    private TaskAssignments() { }

    private record Topology(Map<String, JsonNode> parts) implements TopologyDescriber {
        @Override
        public List<String> subtopologies() {
            return new ArrayList<>(parts.keySet());
        }

        @Override
        public int maxNumInputPartitions(String subtopologyId) {
            return parts.get(subtopologyId).get("tasks").asInt();
        }

        @Override
        public boolean isStateful(String subtopologyId) {
            return parts.get(subtopologyId).get("stateful").asBoolean();
        }
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(answer(Trace.JSON.readTree(line)) + "\n");
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode asked) {
        // As the coordinator hands it over: members in a hash map, subtopologies by their ids.
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (JsonNode each : asked.get("members")) {
            members.put(each.get("id").asText(), new MemberMetadataAndStateImpl(Optional.empty(), Optional.empty(),
                each.get("process").asText(), Map.of(), tasks(each.get("active")), tasks(each.get("standby")),
                tasks(each.get("warmup")), offsets(each.path("offsets")), Map.of()));
        }
        Map<String, JsonNode> parts = new TreeMap<>();
        asked.get("subtopologies").forEach(part -> parts.put(part.get("id").asText(), part));
        AssignmentConfigsImpl configs = AssignmentConfigsImpl.DEFAULT.withNumStandbyReplicas(asked.get("standbys").asInt());
        ObjectNode told = Trace.JSON.createObjectNode();
        try {
            new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), new Topology(parts)).members()
                .forEach((id, given) -> told.set(id, told(given)));
        } catch (TaskAssignorException refused) {
            return Trace.JSON.createObjectNode().put("error", refused.getMessage());
        }
        return told;
    }

    private static Map<String, Map<Integer, Long>> offsets(JsonNode told) {
        Map<String, Map<Integer, Long>> found = new HashMap<>();
        told.fields().forEachRemaining(part -> part.getValue().fields().forEachRemaining(one ->
            found.computeIfAbsent(part.getKey(), id -> new HashMap<>())
                .put(Integer.parseInt(one.getKey()), one.getValue().asLong())));
        return found;
    }

    private static Map<String, Set<Integer>> tasks(JsonNode told) {
        Map<String, Set<Integer>> found = new HashMap<>();
        told.fields().forEachRemaining(part -> {
            Set<Integer> numbers = new HashSet<>();
            part.getValue().forEach(number -> numbers.add(number.asInt()));
            found.put(part.getKey(), numbers);
        });
        return found;
    }

    private static ObjectNode told(MemberAssignment given) {
        ObjectNode row = Trace.JSON.createObjectNode();
        row.set("active", told(given.activeTasks()));
        row.set("standby", told(given.standbyTasks()));
        row.set("warmup", told(Map.<String, Set<Integer>>of()));
        return row;
    }

    private static ObjectNode told(Map<String, Set<Integer>> tasks) {
        ObjectNode row = Trace.JSON.createObjectNode();
        new TreeMap<>(tasks).forEach((part, numbers) -> {
            if (!numbers.isEmpty()) {
                ArrayNode listed = row.putArray(part);
                new TreeSet<>(numbers).forEach(listed::add);
            }
        });
        return row;
    }
}
