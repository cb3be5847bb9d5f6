package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;

/**
 * Kafka's checks of the group coordinator's settings. Each line of standard input is `{"broker": {...}, "group": {...}}`,
 * settings by name, those of the group as a client alters them; the answer is a line: `{}`, or `{"refused": why}`. The line `{}` asks for all
 * settings there are: `{"broker": {name: default}, "group": {name: default}}`.
 */
public final class Settings {
    private Settings() { }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = Trace.JSON.readTree(line);
            out.print((asked.isEmpty() ? all() : checked(asked)) + "\n");
            out.flush();
        }
    }

    private static ObjectNode all() {
        ObjectNode answer = Trace.JSON.createObjectNode();
        defaults(answer.putObject("broker"), Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)));
        defaults(answer.putObject("group"), GroupConfig.CONFIG_DEF);
        return answer;
    }

    private static void defaults(ObjectNode into, ConfigDef defined) {
        defined.configKeys().forEach((name, key) -> into.put(name, ConfigDef.convertToString(key.defaultValue, key.type)));
    }

    private static ObjectNode checked(JsonNode asked) {
        ObjectNode answer = Trace.JSON.createObjectNode();
        try {
            AbstractConfig all = new AbstractConfig(
                Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)),
                given(asked.path("broker")), false);
            GroupCoordinatorConfig broker = new GroupCoordinatorConfig(all);
            ShareGroupConfig shares = new ShareGroupConfig(all);
            beyondTheClass(all, broker);
            if (asked.has("group")) {
                Map<String, String> altered = new HashMap<>();
                asked.get("group").properties().forEach(one -> altered.put(one.getKey(), one.getValue().asText()));
                Release.check(altered, broker, shares);
            }
        } catch (RuntimeException refused) {
            answer.put("refused", refused.getClass().getSimpleName() + ": " + refused.getMessage());
        }
        return answer;
    }

    /** What ends a broker although GroupCoordinatorConfig has nothing against it. */
    private static void beyondTheClass(AbstractConfig all, GroupCoordinatorConfig broker) {
        // KafkaConfig.groupCoordinatorRebalanceProtocols
        if (!all.getList(GroupCoordinatorConfig.GROUP_COORDINATOR_REBALANCE_PROTOCOLS_CONFIG).contains("classic")) {
            throw new ConfigException("Disabling the 'classic' protocol is not supported.");
        }
        // GroupMetadataManager collects them by name.
        Set<String> names = new HashSet<>();
        for (ConsumerGroupPartitionAssignor assignor : broker.consumerGroupAssignors()) {
            if (!names.add(assignor.name())) {
                throw new IllegalStateException("Duplicate key " + assignor.name());
            }
        }
    }

    private static Map<String, Object> given(JsonNode settings) {
        Map<String, Object> given = new HashMap<>();
        settings.properties().forEach(setting -> given.put(setting.getKey(), setting.getValue().asText()));
        return given;
    }
}
