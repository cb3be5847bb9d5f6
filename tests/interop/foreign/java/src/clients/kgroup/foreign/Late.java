package kgroup.foreign;

import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Optional;

/** What the oldest client does not have yet, or the newest has no longer: found by name at run time. */
final class Late {
    /** This version of the client has no such class or method. */
    static final class Absent extends RuntimeException {
        private static final long serialVersionUID = 1L;

        Absent(String what) {
            super("this client has no " + what);
        }
    }

    private Late() {}

    /** The result of the first of these methods that the target has for these arguments. */
    static Object call(Object target, String names, Object... arguments) throws Exception {
        return invoke(target.getClass(), target, names, arguments);
    }

    /** The same for a static method of a class. */
    static Object call(String type, String names, Object... arguments) throws Exception {
        return invoke(type(type), null, names, arguments);
    }

    /** A field of the result of a method that older clients lack: null there, and Optionals opened. */
    static Object optional(Object target, String name) throws Exception {
        try {
            Object value = call(target, name);
            return value instanceof Optional ? ((Optional<?>) value).orElse(null) : value;
        } catch (Absent older) {
            return null;
        }
    }

    static Object make(String type, Object... arguments) throws Exception {
        for (Constructor<?> each : type(type).getConstructors()) {
            if (fits(each.getParameterTypes(), arguments)) {
                return each.newInstance(arguments);
            }
        }
        throw new Absent(type);
    }

    static Class<?> type(String name) {
        try {
            return Class.forName("org.apache.kafka." + name);
        } catch (ClassNotFoundException older) {
            throw new Absent(name);
        }
    }

    private static Object invoke(Class<?> type, Object target, String names, Object... arguments) throws Exception {
        for (String name : names.split("\\|")) {
            for (Method each : type.getMethods()) {
                boolean open = Modifier.isPublic(each.getDeclaringClass().getModifiers()) && !each.isBridge();
                if (open && each.getName().equals(name) && fits(each.getParameterTypes(), arguments)) {
                    try {
                        return each.invoke(target, arguments);
                    } catch (InvocationTargetException failed) {
                        throw failed.getCause() instanceof Exception ? (Exception) failed.getCause() : failed;
                    }
                }
            }
        }
        throw new Absent(type.getSimpleName() + "." + names);
    }

    private static boolean fits(Class<?>[] wanted, Object... given) {
        if (wanted.length != given.length) {
            return false;
        }
        for (int i = 0; i < wanted.length; i++) {
            boolean number = wanted[i] == long.class && given[i] instanceof Long;
            if (!number && !wanted[i].isInstance(given[i])) {
                return false;
            }
        }
        return true;
    }
}
