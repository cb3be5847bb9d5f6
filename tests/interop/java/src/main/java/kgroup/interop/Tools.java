package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of Kafka's command line tools one after the other in one warm JVM.
 * Speaks JSON lines as the driver does: {"id", "main", "args", "stdin"} in,
 * {"id", "result": {"status", "stdout", "stderr"}} out. End of input ends it.
 */
public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Unwinds a tool from where it would have ended the process. */
    private static final class Ended extends Error {
        private static final long serialVersionUID = 1L;

        private Ended() {
            super("the tool has ended", null, false, false);
        }
    }

    /** One run of a tool; its first exit counts, since some catch what unwinds them and exit again. */
    private static final class Run {
        private final ByteArrayOutputStream stdout = new ByteArrayOutputStream();
        private final ByteArrayOutputStream stderr = new ByteArrayOutputStream();
        private ObjectNode result;

        private void end(int status) {
            if (result == null) {
                System.out.flush();
                System.err.flush();
                result = JSON.createObjectNode()
                        .put("status", status)
                        .put("stdout", stdout.toString(StandardCharsets.UTF_8))
                        .put("stderr", stderr.toString(StandardCharsets.UTF_8));
            }
        }

        private void exit(int status, String message) {
            end(status);
            throw new Ended();
        }

        /** Ends with 0 when main returns and with 1 when it throws, as a process would. */
        private void call(String main, String[] args) throws ReflectiveOperationException {
            try {
                Class.forName(main).getMethod("main", String[].class).invoke(null, (Object) args);
                end(0);
            } catch (InvocationTargetException thrown) {
                if (result == null) {
                    thrown.getCause().printStackTrace();
                }
                end(1);
            }
        }
    }

    private Tools() {}

    public static void main(String[] args) throws Exception {
        PrintStream out = System.out;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Exit.setShutdownHookAdder((name, hook) -> { });
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            ObjectNode reply = JSON.createObjectNode().put("id", request.get("id").asLong());
            reply.set("result", run(request));
            out.println(reply);
            out.flush();
        }
        System.exit(0);
    }

    private static ObjectNode run(JsonNode request) throws ReflectiveOperationException {
        InputStream in = System.in;
        PrintStream out = System.out;
        PrintStream err = System.err;
        Run run = new Run();
        Exit.setExitProcedure(run::exit);
        Exit.setHaltProcedure(run::exit);
        System.setIn(new ByteArrayInputStream(request.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(run.stdout, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(run.stderr, true, StandardCharsets.UTF_8));
        try {
            run.call(request.get("main").asText(), JSON.convertValue(request.get("args"), String[].class));
        } finally {
            System.setIn(in);
            System.setOut(out);
            System.setErr(err);
        }
        return run.result;
    }
}
