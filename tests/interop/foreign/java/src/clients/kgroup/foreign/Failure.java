package kgroup.foreign;

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.common.protocol.Errors;

/** Exceptions as the names of Kafka's error codes. */
public final class Failure {
    private Failure() {}

    public static Throwable cause(Throwable failure) {
        boolean wrapper = failure instanceof ExecutionException || failure instanceof CompletionException;
        return wrapper && failure.getCause() != null ? cause(failure.getCause()) : failure;
    }

    /** The code's name; COMMIT_FAILED and ABSENT (see Late); the class name for what has no code. */
    public static String code(Throwable failure) {
        if (failure instanceof CommitFailedException) {
            return "COMMIT_FAILED";
        }
        if (failure instanceof Late.Absent) {
            return "ABSENT";
        }
        Errors error = Errors.forException(failure);
        boolean unnamed = error == Errors.UNKNOWN_SERVER_ERROR || error == Errors.NONE;
        return unnamed ? failure.getClass().getSimpleName() : error.name();
    }
}
