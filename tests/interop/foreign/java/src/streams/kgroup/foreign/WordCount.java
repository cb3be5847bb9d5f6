package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Counts words: topic `in`, a repartition topic, a store with its changelog, topic `out` with every count.
 * Arguments: in, out, and key=value of Streams. Speaks JSON lines as tests/interop/driver.py describes: `state`.
 */
public final class WordCount {
    private static final ObjectMapper JSON = new ObjectMapper();

    private WordCount() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        Properties properties = new Properties();
        for (String each : Arrays.copyOfRange(args, 2, args.length)) {
            properties.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
        }
        KafkaStreams streams = new KafkaStreams(topology(args[0], args[1]).build(), properties);
        streams.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            Map<String, Object> reply = Map.of("id", request.get("id").asLong(), "result", state(streams));
            out.println(JSON.writeValueAsString(reply));
            out.flush();
        }
        streams.close(Duration.ofSeconds(10));
        System.exit(0);
    }

    private static StreamsBuilder topology(String in, String out) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(in, Consumed.with(Serdes.String(), Serdes.String()))
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts"))
                .toStream()
                .mapValues(count -> count.toString())
                .to(out, Produced.with(Serdes.String(), Serdes.String()));
        return builder;
    }

    private static Map<String, Object> state(KafkaStreams streams) {
        Set<String> active = new TreeSet<>();
        Set<String> standby = new TreeSet<>();
        Map<String, Object> threads = new TreeMap<>();
        for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
            Set<String> running = names(thread.activeTasks());
            Set<String> replicas = names(thread.standbyTasks());
            threads.put(thread.threadName(), Map.of("active", running, "standby", replicas));
            active.addAll(running);
            standby.addAll(replicas);
        }
        Map<String, Object> row = new TreeMap<>();
        row.put("state", streams.state().toString());
        row.put("active", active);
        row.put("standby", standby);
        row.put("threads", threads);
        return row;
    }

    private static Set<String> names(Set<TaskMetadata> tasks) {
        Set<String> names = new TreeSet<>();
        for (TaskMetadata task : tasks) {
            names.add(task.taskId().toString());
        }
        return names;
    }
}
