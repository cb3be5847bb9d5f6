package kafka.server.share;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/** Time that moves when told to, and a timer whose tasks run one by one, each at its time, those of one time in order. */
final class Clock implements Time, Timer {
    private final TreeMap<Long, Deque<TimerTaskEntry>> due = new TreeMap<>();
    private long now = 1_000_000;

    @Override
    public void add(TimerTask task) {
        long at = now + task.delayMs;
        due.computeIfAbsent(at, k -> new ArrayDeque<>()).add(new TimerTaskEntry(task, at));
    }

    void forgetAll() {
        due.clear();
    }

    void advance(long ms) {
        long until = now + ms;
        while (!due.isEmpty() && due.firstKey() <= until) {
            now = Math.max(now, due.firstKey());
            Deque<TimerTaskEntry> tasks = due.get(due.firstKey());
            TimerTaskEntry entry = tasks.poll();
            if (tasks.isEmpty()) {
                due.remove(due.firstKey());
            }
            if (!entry.cancelled()) {
                entry.timerTask.run();
            }
        }
        now = until;
    }

    @Override
    public boolean advanceClock(long timeoutMs) {
        throw new UnsupportedOperationException();
    }

    @Override
    public int size() {
        return due.values().stream().mapToInt(Deque::size).sum();
    }

    @Override
    public void close() { }

    @Override
    public long milliseconds() {
        return now;
    }

    @Override
    public long nanoseconds() {
        return now * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        throw new UnsupportedOperationException();
    }
}
