package kgroup.differential;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/** One of Kafka's assignors; what it is given and what it answers goes into the trace. It fails when told to. */
public abstract class Spy implements ConsumerGroupPartitionAssignor {
    private final ConsumerGroupPartitionAssignor real;
    Trace trace;
    boolean failing = false;

    /** Kafka's uniform assignor. */
    public static final class Uniform extends Spy {
        public Uniform() {
            super(new UniformAssignor());
        }
    }

    /** Kafka's range assignor. */
    public static final class Range extends Spy {
        public Range() {
            super(new RangeAssignor());
        }
    }

    private Spy(ConsumerGroupPartitionAssignor real) {
        this.real = real;
    }

    @Override
    public String name() {
        return real.name();
    }

    @Override
    public GroupAssignment assign(GroupSpec spec, SubscribedTopicDescriber topics) {
        ObjectNode event = trace.assignment();
        event.put("name", name());
        event.put("homogeneous", spec.subscriptionType().toString().equalsIgnoreCase("homogeneous"));
        ObjectNode members = event.putObject("members");
        for (String id : spec.memberIds()) {
            MemberSubscription subscription = spec.memberSubscription(id);
            ObjectNode member = members.putObject(id);
            Set<String> names = new TreeSet<>();
            subscription.subscribedTopicIds().forEach(topic -> names.add(topic.toString()));
            names.forEach(member.putArray("topics")::add);
            member.put("rack", subscription.rackId().orElse(null));
            member.put("instance", subscription.instanceId().orElse(null));
            member.set("current", partitions(spec.memberAssignment(id).partitions()));
        }
        if (failing) {
            throw new PartitionAssignorException("told to fail");
        }
        GroupAssignment answer = real.assign(spec, topics);
        ObjectNode given = event.putObject("answer");
        answer.members().forEach((id, member) -> given.set(id, partitions(member.partitions())));
        return answer;
    }

    private static ObjectNode partitions(Map<Uuid, Set<Integer>> partitions) {
        ObjectNode node = Trace.JSON.createObjectNode();
        partitions.forEach((topic, numbers) -> {
            if (!numbers.isEmpty()) {
                new TreeSet<>(numbers).forEach(node.putArray(topic.toString())::add);
            }
        });
        return node;
    }
}
