package kgroup.differential;

import java.lang.reflect.Constructor;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;

/** What Kafka's service answers by itself, before it asks its coordinator. */
final class Service {
    private final GroupCoordinatorService service;

    Service(GroupCoordinatorConfig config) {
        try {
            Constructor<?> constructor = GroupCoordinatorService.class.getDeclaredConstructors()[0];
            constructor.setAccessible(true);
            service = (GroupCoordinatorService) constructor.newInstance(Release.parts(config));
        } catch (ReflectiveOperationException absent) {
            throw new IllegalStateException(absent);
        }
        States.<AtomicBoolean>field(service, "isActive").set(true);
    }

    /** The answer, or null where the service goes on to its runtime, which is not there. */
    <T> T refusal(Function<GroupCoordinatorService, CompletableFuture<T>> request) {
        try {
            return request.apply(service).join();
        } catch (NullPointerException | ArithmeticException goesOn) {
            return null;
        }
    }
}
