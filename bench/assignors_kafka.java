import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/** Kafka's own server-side assignors over the groups of assignors.py: same sizes, same columns. */
public class AssignorsKafka {
    record Counts(Map<Uuid, Integer> partitions) implements SubscribedTopicDescriber {
        public int numPartitions(Uuid topic) {
            return partitions.getOrDefault(topic, -1);
        }

        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }

    record Timed(double first, double warm, GroupAssignment targets) { }

    static Counts topics(int partitions) {
        int count = partitions <= 10_000 ? 100 : 1_000;
        Map<Uuid, Integer> counts = new LinkedHashMap<>();
        for (int n = 0; n < count; n++) counts.put(new Uuid(7L * n + 1, n), partitions / count);
        return new Counts(counts);
    }

    static GroupSpec group(int members, Counts topics, boolean alike, Map<String, MemberAssignment> present) {
        List<Uuid> ids = List.copyOf(topics.partitions.keySet());
        List<Set<Uuid>> fifths = new ArrayList<>();
        for (int b = 0; b < 5; b++) {
            Set<Uuid> fifth = new HashSet<>();
            for (int n = 0; n < ids.size(); n++) if (alike || n % 5 == b || n % 5 == (b + 1) % 5) fifth.add(ids.get(n));
            fifths.add(fifth);
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> specs = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (int n = 0; n < members; n++) {
            String id = "member-" + n;
            Assignment current = Assignment.EMPTY;
            if (present.containsKey(id)) {
                current = new Assignment(present.get(id).partitions());
                current.partitions().forEach((topic, held) -> held.forEach(
                    p -> owners.computeIfAbsent(topic, __ -> new HashMap<>()).put(p, id)));
            }
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), fifths.get(n % 5), current));
        }
        return new GroupSpecImpl(specs, alike ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS, owners);
    }

    static Timed time(ConsumerGroupPartitionAssignor assignor, GroupSpec group, Counts topics) {
        List<Double> times = new ArrayList<>();
        GroupAssignment targets = null;
        double sum = 0;
        while (times.size() < 15 && (times.isEmpty() || sum < 1500)) {
            long start = System.nanoTime();
            targets = assignor.assign(group, topics);
            times.add((System.nanoTime() - start) / 1e6);
            sum += times.get(times.size() - 1);
        }
        List<Double> warm = new ArrayList<>(times.size() > 2 ? times.subList(times.size() / 2, times.size()) : times);
        Collections.sort(warm);
        return new Timed(times.get(0), warm.get(warm.size() / 2), targets);
    }

    public static void main(String[] args) {
        for (ConsumerGroupPartitionAssignor assignor : List.of(new UniformAssignor(), new RangeAssignor()))
            for (boolean alike : new boolean[]{true, false})
                for (int members : new int[]{100, 1_000, 10_000})
                    for (int partitions : new int[]{10_000, 100_000, 1_000_000}) {
                        String subs = alike ? "homo" : "hetero";
                        if (args.length > 0 && !args[0].equals("all") && !args[0].equals(assignor.name())) continue;
                        if (args.length > 1 && !args[1].equals("all") && !args[1].equals(subs)) continue;
                        if (args.length > 3 && (members != Integer.parseInt(args[2]) || partitions != Integer.parseInt(args[3]))) continue;
                        Counts topics = topics(partitions);
                        Timed first = time(assignor, group(members, topics, alike, Map.of()), topics);
                        Timed more = time(assignor, group(members + 1, topics, alike, first.targets.members()), topics);
                        System.out.printf(Locale.ROOT, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.2f%n", assignor.name(), subs,
                            members, partitions, first.first, first.warm, more.first, more.warm);
                    }
    }
}
