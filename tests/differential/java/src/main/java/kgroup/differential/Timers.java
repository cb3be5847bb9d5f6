package kgroup.differential;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;

/** The coordinator's timers as data: what is armed can be seen, and one is taken at a time, in the order they fall due. */
final class Timers implements CoordinatorTimer<CoordinatorRecord> {
    record Armed(String key, long deadlineMs, long order, boolean retry, long backoffMs,
                 TimeoutOperation<CoordinatorRecord> operation) { }

    private final Time time;
    private final Map<String, Armed> armed = new TreeMap<>();
    private long order = 0;

    Timers(Time time) {
        this.time = time;
    }

    @Override
    public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoffMs,
                         TimeoutOperation<CoordinatorRecord> operation) {
        long deadline = time.milliseconds() + unit.toMillis(delay);
        armed.put(key, new Armed(key, deadline, order++, retry, backoffMs, operation));
    }

    @Override
    public void schedule(String key, long delay, TimeUnit unit, boolean retry,
                         TimeoutOperation<CoordinatorRecord> operation) {
        schedule(key, delay, unit, retry, 500L, operation);
    }

    @Override
    public void scheduleIfAbsent(String key, long delay, TimeUnit unit, boolean retry,
                                 TimeoutOperation<CoordinatorRecord> operation) {
        if (!armed.containsKey(key)) {
            schedule(key, delay, unit, retry, operation);
        }
    }

    @Override
    public void cancel(String key) {
        armed.remove(key);
    }

    @Override
    public boolean isScheduled(String key) {
        return armed.containsKey(key);
    }

    Map<String, Armed> all() {
        return armed;
    }

    /** The timer that is due next at or before the time, taken off; null when there is none. */
    Armed take(long untilMs) {
        Armed next = armed.values().stream()
            .min(Comparator.comparingLong(Armed::deadlineMs).thenComparingLong(Armed::order)).orElse(null);
        if (next == null || next.deadlineMs > untilMs) {
            return null;
        }
        armed.remove(next.key);
        return next;
    }

    /** What the runtime does with a timer whose operation failed. */
    void again(Armed failed) {
        if (failed.retry) {
            schedule(failed.key, failed.backoffMs, TimeUnit.MILLISECONDS, true, failed.backoffMs, failed.operation);
        }
    }
}
