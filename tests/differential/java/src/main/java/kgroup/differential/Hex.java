package kgroup.differential;

import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/** Bytes as text, both ways. */
final class Hex {
    private static final HexFormat FORMAT = HexFormat.of();

    private Hex() { }

    static String of(byte[] bytes) {
        return bytes == null ? null : FORMAT.formatHex(bytes);
    }

    static String of(Message message, short version) {
        return message == null ? null : of(bytes(MessageUtil.toByteBufferAccessor(message, version).buffer()));
    }

    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }

    static byte[] bytes(String text) {
        return FORMAT.parseHex(text);
    }
}
