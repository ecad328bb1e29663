import java.io.PrintStream;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.cdc.connectors.mysql.source.MySqlSource;
import org.apache.flink.cdc.connectors.mysql.table.StartupOptions;
import org.apache.flink.cdc.connectors.shaded.org.apache.kafka.connect.data.Struct;
import org.apache.flink.cdc.connectors.shaded.org.apache.kafka.connect.source.SourceRecord;
import org.apache.flink.cdc.debezium.DebeziumDeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.RichSinkFunction;
import org.apache.flink.util.Collector;

/**
 * Flink CDC in a cluster of its own process: a snapshot of compat.t, then its stream. Prints the rows of each checkpoint, once it is whole,
 * and the checkpoint as where to go on; see crates/interfaces/cli/tests/compat/clients. STATE names the folder of its checkpoints.
 */
public class Follow {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss").withZone(ZoneOffset.UTC);

    /** A row as the harness compares it. */
    static class Lines implements DebeziumDeserializationSchema<String> {
        @Override
        public void deserialize(SourceRecord record, Collector<String> out) {
            Struct value = (Struct) record.value();
            if (value.schema().field("after") == null || value.getStruct("after") == null) return;
            Struct row = value.getStruct("after");
            Object at = row.get("at");
            out.collect("row " + row.get("id") + "\t" + row.get("word") + "\t" + row.get("price") + "\t"
                + (at == null ? "NULL" : DATE.format(Instant.ofEpochMilli((Long) at))));
        }

        @Override
        public TypeInformation<String> getProducedType() {
            return TypeInformation.of(String.class);
        }
    }

    /** Holds rows until the checkpoint that contains them is whole. */
    static class Printed extends RichSinkFunction<String> implements CheckpointedFunction, CheckpointListener, Serializable {
        final String checkpoints;
        transient List<String> rows;
        transient TreeMap<Long, List<String>> taken;

        Printed(String checkpoints) {
            this.checkpoints = checkpoints;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) {
            rows = new ArrayList<>();
            taken = new TreeMap<>();
        }

        @Override
        public void invoke(String row, Context context) {
            rows.add(row);
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) {
            taken.put(context.getCheckpointId(), rows);
            rows = new ArrayList<>();
        }

        @Override
        public void notifyCheckpointComplete(long id) throws Exception {
            var done = taken.headMap(id, true);
            done.values().forEach(lines -> lines.forEach(OUT::println));
            done.clear();
            try (var folders = Files.walk(Path.of(checkpoints), 2)) {
                var place = folders.filter(folder -> folder.endsWith("chk-" + id)).max((a, b) -> a.getParent().toFile().lastModified() < b.getParent().toFile().lastModified() ? -1 : 1);
                OUT.println("at " + place.orElseThrow().toUri());
            }
        }
    }

    public static void main(String[] args) throws Exception {
        Path state = Path.of(System.getenv("STATE")).toAbsolutePath();
        Files.createDirectories(state);
        Configuration settings = new Configuration();
        settings.setString("execution.checkpointing.interval", "300 ms");
        settings.setString("execution.checkpointing.dir", state.toUri().toString());
        settings.setString("execution.checkpointing.num-retained", "1000");
        settings.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        settings.setString("execution.checkpointing.checkpoints-after-tasks-finish", "true");
        settings.setString("restart-strategy.type", "disable");
        settings.setString("taskmanager.memory.network.min", "16m");
        settings.setString("taskmanager.memory.network.max", "16m");
        settings.setString("taskmanager.memory.managed.size", "16m");
        if (!args[4].equals("-")) settings.setString("execution.state-recovery.path", args[4]);
        Properties driver = new Properties();
        driver.setProperty("allowPublicKeyRetrieval", "true");
        driver.setProperty("useSSL", System.getenv("TLS") != null ? "true" : "false");
        Properties debezium = new Properties();
        debezium.setProperty("decimal.handling.mode", "string");
        debezium.setProperty("database.ssl.mode", System.getenv("TLS") != null ? "required" : "disabled");
        MySqlSource<String> source = MySqlSource.<String>builder()
            .hostname("127.0.0.1").port(Integer.parseInt(args[0])).username(args[1]).password(args[2])
            .databaseList("compat").tableList("compat.t").serverTimeZone("UTC")
            .serverId(Long.toString(ProcessHandle.current().pid()))
            .startupOptions(StartupOptions.initial())
            .jdbcProperties(driver).debeziumProperties(debezium)
            .deserializer(new Lines())
            .build();
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "compat").uid("source")
            .addSink(new Printed(state.toString())).uid("printed");
        try {
            environment.execute("compat");
        } catch (Exception error) {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            System.err.println("error: " + cause.getMessage());
            System.exit(1);
        }
    }
}
