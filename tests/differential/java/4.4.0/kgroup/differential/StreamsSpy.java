package kgroup.differential;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignmentState;
import org.apache.kafka.coordinator.group.api.streams.assignor.TaskAssignor;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/** Kafka's task assignor; what it is given, members in the order it sees them, and what it answers is traced. */
final class StreamsSpy implements TaskAssignor {
    static final String NAME = "sticky tasks";
    private final TaskAssignor real = new StickyTaskAssignor();
    private final Trace trace;

    StreamsSpy(Trace trace) {
        this.trace = trace;
    }

    static void install(Object manager, Trace trace) {
        Map<String, TaskAssignor> assignors = States.field(manager, "streamsGroupAssignors");
        assignors.replaceAll((name, real) -> new StreamsSpy(trace));
        // The one that a group has which names none.
        States.set(manager, "defaultStreamsGroupAssignor", new StreamsSpy(trace));
    }

    @Override
    public String name() {
        return real.name();
    }

    @Override
    public GroupAssignment assign(GroupSpec spec, TopologyDescriber topology) {
        ObjectNode event = trace.assignment().put("name", NAME);
        event.put("standbys", spec.configs().numStandbyReplicas());
        ObjectNode kinds = event.putObject("subtopologies");
        topology.subtopologies().forEach(id -> kinds.putArray(id)
            .add(topology.maxNumInputPartitions(id)).add(topology.isStateful(id)));
        ArrayNode order = event.putArray("order");
        ObjectNode members = event.putObject("members");
        spec.memberIds().forEach(id -> {
            order.add(id);
            MemberAssignmentState member = spec.memberAssignmentState(id);
            ObjectNode one = members.putObject(id).put("process", spec.memberMetadata(id).processId());
            one.set("active", States.tasks(member.activeTasks()));
            one.set("standby", States.tasks(member.standbyTasks()));
            one.set("offsets", States.offsetsOf(member.taskOffsets()));
        });
        GroupAssignment answer = real.assign(spec, topology);
        ObjectNode given = event.putObject("answer");
        answer.members().forEach((id, member) -> {
            ObjectNode one = given.putObject(id);
            one.set("active", States.tasks(member.activeTasks()));
            one.set("standby", States.tasks(member.standbyTasks()));
        });
        return answer;
    }
}
