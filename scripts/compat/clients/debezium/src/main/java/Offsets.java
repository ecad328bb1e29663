import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;
import org.apache.kafka.connect.util.Callback;

/** Debezium's offsets: printed whenever it writes them. Who began it keeps them, and gives the last ones again. */
public class Offsets extends MemoryOffsetBackingStore {
    static String begin = "";

    static ByteBuffer bytes(String base64) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(base64));
    }

    static String text(ByteBuffer bytes) {
        return Base64.getEncoder().encodeToString(bytes.array());
    }

    @Override
    public void start() {
        super.start();
        String[] parts = begin.split(":");
        for (int i = 0; i + 1 < parts.length; i += 2) data.put(bytes(parts[i]), bytes(parts[i + 1]));
    }

    @Override
    public Future<Void> set(Map<ByteBuffer, ByteBuffer> values, Callback<Void> callback) {
        Future<Void> done = super.set(values, callback);
        try {
            done.get();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        // Begun within its snapshot it takes all of it again, so this is no place to go on.
        for (ByteBuffer value : values.values()) {
            if (new String(value.array(), StandardCharsets.UTF_8).contains("\"snapshot\":")) return done;
        }
        StringBuilder line = new StringBuilder("at ");
        data.forEach((key, value) -> line.append(text(key)).append(':').append(text(value)).append(':'));
        Follow.OUT.println(line);
        return done;
    }

    @Override
    public Set<Map<String, Object>> connectorPartitions(String connectorName) {
        return Set.of();
    }
}
