package kgroup.interop;

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.common.protocol.Errors;

/** Exceptions as the names of Kafka's error codes. */
final class Failure {
    private Failure() {}

    static Throwable cause(Throwable failure) {
        boolean wrapper = failure instanceof ExecutionException || failure instanceof CompletionException;
        return wrapper && failure.getCause() != null ? cause(failure.getCause()) : failure;
    }

    /** The code's name; COMMIT_FAILED for CommitFailedException, the class name for what has no code. */
    static String code(Throwable failure) {
        if (failure instanceof CommitFailedException) {
            return "COMMIT_FAILED";
        }
        Errors error = Errors.forException(failure);
        boolean unnamed = error == Errors.UNKNOWN_SERVER_ERROR || error == Errors.NONE;
        return unnamed ? failure.getClass().getSimpleName() : error.name();
    }
}
