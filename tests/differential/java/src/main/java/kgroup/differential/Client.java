package kgroup.differential;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;

/** What one client has been told so far; an operation's "own" member id, epoch and partitions are these. */
final class Client {
    final String name;
    String memberId = "";
    int epoch = 0;
    int lastEpoch = 0;
    String leader = "";
    String protocol = null;
    List<String> members = new ArrayList<>();
    final Map<Uuid, Set<Integer>> owned = new LinkedHashMap<>();
    int endpointEpoch = 0;
    final Map<String, List<Integer>> active = new LinkedHashMap<>();
    final Map<String, List<Integer>> standby = new LinkedHashMap<>();

    Client(String name) {
        this.name = name;
    }

    boolean leads() {
        return !memberId.isEmpty() && memberId.equals(leader);
    }

    void epoch(int now) {
        if (now != epoch) {
            lastEpoch = epoch;
            epoch = now;
        }
    }

    void own(Uuid topic, int partition) {
        owned.computeIfAbsent(topic, any -> new HashSet<>()).add(partition);
    }

    void forget() {
        memberId = "";
        epoch = 0;
        leader = "";
        members = new ArrayList<>();
        owned.clear();
        endpointEpoch = 0;
        loseTasks();
    }

    void loseTasks() {
        active.clear();
        standby.clear();
    }
}
