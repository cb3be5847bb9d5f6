import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.server.common.Feature;

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
        settings("broker setting", GroupCoordinatorConfig.CONFIG_DEF);
        settings("group setting", GroupConfig.CONFIG_DEF);
    }

    private static void settings(String kind, ConfigDef defined) {
        defined.configKeys().forEach((name, key) -> {
            if (!key.internalConfig) {
                String bounds = key.validator == null ? "" : " " + key.validator;
                print(kind, name, ConfigDef.convertToString(key.defaultValue, key.type) + bounds);
            }
        });
    }

    private static void print(String kind, String name, String value) {
        System.out.println(kind + "\t" + name + "\t" + value.replace('\n', ' '));
    }
}
