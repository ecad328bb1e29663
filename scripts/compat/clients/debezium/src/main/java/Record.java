import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/**
 * Debezium embedded, from the first log of a server: prints each event as TOPIC, TAB, KEY, TAB, VALUE, until a row of the table
 * `end` comes. Arguments: port, folder for its history of the schema, then settings as NAME=VALUE; see scripts/make-changes.sh.
 * With COUNT=1 nothing is printed but the number of events and how long they took from the first one on.
 */
public class Record {
    static long count, first;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        boolean counts = System.getenv("COUNT") != null;
        Path state = Path.of(args[1]);
        Files.createDirectories(state);
        Properties p = new Properties();
        p.setProperty("name", "record");
        p.setProperty("connector.class", "io.debezium.connector.mysql.MySqlConnector");
        p.setProperty("offset.storage", "org.apache.kafka.connect.storage.MemoryOffsetBackingStore");
        p.setProperty("offset.flush.interval.ms", "60000");
        p.setProperty("schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
        p.setProperty("schema.history.internal.file.filename", state.resolve("schema").toString());
        p.setProperty("database.hostname", "127.0.0.1");
        p.setProperty("database.port", args[0]);
        p.setProperty("database.user", "record");
        p.setProperty("database.password", "record");
        p.setProperty("database.server.id", Long.toString(ProcessHandle.current().pid()));
        p.setProperty("database.ssl.mode", "disabled");
        p.setProperty("driver.allowPublicKeyRetrieval", "true");
        p.setProperty("errors.max.retries", "0");
        p.setProperty("key.converter.schemas.enable", "false");
        p.setProperty("value.converter.schemas.enable", "false");
        for (int i = 2; i < args.length; i++) {
            int equals = args[i].indexOf('=');
            p.setProperty(args[i].substring(0, equals), args[i].substring(equals + 1));
        }
        DebeziumEngine<ChangeEvent<String, String>> engine = DebeziumEngine.create(Json.class)
            .using(p)
            .using((success, message, error) -> {
                Throwable cause = error;
                while (cause != null && cause.getCause() != null) cause = cause.getCause();
                System.err.println("error: " + (cause == null ? message : cause.toString()));
                System.exit(1);
            })
            .notifying((events, committer) -> {
                for (ChangeEvent<String, String> event : events) {
                    if (count++ == 0) first = System.nanoTime();
                    if (!counts) out.println(event.destination() + "\t" + event.key() + "\t" + event.value());
                    if (event.destination().endsWith(".end") && event.value() != null && event.value().contains("\"op\":\"c\"")) {
                        if (counts) out.println(count + "\t" + (System.nanoTime() - first) / 1_000_000);
                        out.flush();
                        Runtime.getRuntime().halt(0);
                    }
                    committer.markProcessed(event);
                }
                committer.markBatchFinished();
            })
            .build();
        engine.run();
    }
}
