package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * RE2/J, asked directly. Each line of standard input is `{"pattern": "a.*", "topics": ["abc"]}`, the answer a line:
 * `{"matches": ["abc"]}`, or `{"error": why}`.
 */
public final class Patterns {
    private Patterns() { }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.print(answer(Trace.JSON.readTree(line)) + "\n");
            out.flush();
        }
    }

    private static ObjectNode answer(JsonNode asked) {
        ObjectNode told = Trace.JSON.createObjectNode();
        try {
            Pattern pattern = Pattern.compile(asked.get("pattern").asText());
            ArrayNode matches = Trace.JSON.createArrayNode();
            asked.get("topics").forEach(topic -> {
                if (pattern.matches(topic.asText())) {
                    matches.add(topic.asText());
                }
            });
            told.set("matches", matches);
        } catch (PatternSyntaxException refused) {
            told.put("error", refused.getMessage());
        } catch (RuntimeException | StackOverflowError broken) {
            told.put("broken", broken.getClass().getSimpleName());
        }
        return told;
    }
}
