package kgroup.differential;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;

/** What the coordinator has carried out in the background (patterns resolved), held until the program lets it run. */
final class Tasks implements CoordinatorExecutor<CoordinatorRecord> {
    private record Task<R>(TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
        CoordinatorResult<Void, CoordinatorRecord> run() {
            R result;
            try {
                result = task.run();
            } catch (Throwable failed) {
                return operation.onComplete(null, failed);
            }
            return operation.onComplete(result, null);
        }
    }

    private final Map<String, Task<?>> waiting = new LinkedHashMap<>();

    @Override
    public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
        return waiting.putIfAbsent(key, new Task<>(task, operation)) == null;
    }

    @Override
    public boolean isScheduled(String key) {
        return waiting.containsKey(key);
    }

    @Override
    public void cancel(String key) {
        waiting.remove(key);
    }

    /** The key of the task that waits longest; null when none does. */
    String next() {
        return waiting.isEmpty() ? null : waiting.keySet().iterator().next();
    }

    CoordinatorResult<Void, CoordinatorRecord> run(String key) {
        return waiting.remove(key).run();
    }
}
