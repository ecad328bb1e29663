import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Properties;

/**
 * Debezium embedded: a snapshot of compat.t, then its stream. Prints the rows, and its offsets as where to go on; see
 * crates/interfaces/cli/tests/compat/clients. STATE names a folder for its history of the schema.
 */
public class Follow {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss").withZone(ZoneOffset.UTC);
    static final ObjectMapper JSON = new ObjectMapper();

    static void print(ChangeEvent<String, String> event) {
        try {
            if (event.value() == null) return;
            JsonNode row = JSON.readTree(event.value()).path("after");
            if (!row.has("word")) return;
            JsonNode at = row.get("at");
            OUT.println("row " + row.get("id").asText() + "\t" + row.get("word").asText() + "\t" + row.get("price").asText()
                + "\t" + (at.isNull() ? "NULL" : DATE.format(Instant.ofEpochMilli(at.asLong()))));
        } catch (java.io.IOException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] args) throws Exception {
        Path state = Path.of(System.getenv("STATE"));
        Files.createDirectories(state);
        Offsets.begin = args[4];
        Properties p = new Properties();
        p.setProperty("name", "compat");
        p.setProperty("topic.prefix", "compat");
        p.setProperty("connector.class", "io.debezium.connector.mysql.MySqlConnector");
        p.setProperty("offset.storage", "Offsets");
        p.setProperty("offset.flush.interval.ms", "0");
        p.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
        p.setProperty("schema.history.internal.file.filename", state.resolve("schema").toString());
        p.setProperty("database.hostname", "127.0.0.1");
        p.setProperty("database.port", args[0]);
        p.setProperty("database.user", args[1]);
        p.setProperty("database.password", args[2]);
        p.setProperty("database.server.id", Long.toString(ProcessHandle.current().pid()));
        p.setProperty("database.ssl.mode", System.getenv("TLS") != null ? "required" : "disabled");
        p.setProperty("driver.allowPublicKeyRetrieval", "true");
        p.setProperty("database.include.list", "compat");
        p.setProperty("table.include.list", "compat.t");
        p.setProperty("decimal.handling.mode", "string");
        p.setProperty("errors.max.retries", "0");
        p.setProperty("key.converter.schemas.enable", "false");
        p.setProperty("value.converter.schemas.enable", "false");
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(p)
            .using((success, message, error) -> {
                Throwable cause = error;
                while (cause != null && cause.getCause() != null) cause = cause.getCause();
                System.err.println("error: " + (cause == null ? message : cause.getMessage()));
                System.exit(1);
            })
            .notifying((events, committer) -> {
                for (ChangeEvent<String, String> event : events) {
                    print(event);
                    committer.markProcessed(event);
                }
                // Writes the offsets.
                committer.markBatchFinished();
            })
            .build();
        engine.run();
    }
}
