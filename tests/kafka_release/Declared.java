import java.util.Set;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints what a release declares outside of its JSON: a kind, a name and a value, with a tab between each. */
public final class Declared {
    public static void main(String[] args) {
        for (Errors error : Errors.values()) {
            boolean retriable = error.exception() instanceof RetriableException;
            print("error", error.name(), error.code() + (retriable ? ", retriable" : ""));
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            print("feature", feature.featureName(), Short.toString(feature.latestProduction()));
        }
        settings("broker setting", GroupCoordinatorConfig.CONFIG_DEF, Set.of());
        settings("group setting", GroupConfig.CONFIG_DEF, Set.of());
        settings("other broker setting", AbstractKafkaConfig.CONFIG_DEF, GroupCoordinatorConfig.CONFIG_DEF.names());
        settings("topic setting", LogConfig.configDefCopy(), Set.of());
    }

    private static void settings(String kind, ConfigDef defined, Set<String> without) {
        defined.configKeys().forEach((name, key) -> {
            if (!key.internalConfig && !without.contains(name)) {
                String value = key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : "required";
                print(kind, name, value + (key.validator == null ? "" : " " + key.validator));
            }
        });
    }

    private static void print(String kind, String name, String value) {
        System.out.println(kind + "\t" + name + "\t" + value.replace('\n', ' '));
    }
}
