import com.zendesk.maxwell.Maxwell;
import com.zendesk.maxwell.MaxwellContext;
import com.zendesk.maxwell.producer.AbstractProducer;
import com.zendesk.maxwell.producer.ProducerFactory;
import com.zendesk.maxwell.row.RowMap;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Maxwell from the first log of a server: prints each row as KEY, TAB, LINE, until a row of the table `canal_end` comes. What it
 * keeps for itself is kept on another server, since a log would have it. Arguments: the two ports, then Maxwell's own options; see
 * scripts/make-changes.sh.
 */
public class Record implements ProducerFactory {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        List<String> options = new ArrayList<>();
        Collections.addAll(options, "--replication_host=127.0.0.1", "--replication_port=" + args[0], "--replication_user=maxwell",
            "--replication_password=maxwell", "--host=127.0.0.1", "--port=" + args[1], "--user=maxwell", "--password=maxwell",
            "--init_position=binlog.000001:4:0", "--custom_producer.factory=" + Record.class.getName());
        options.addAll(List.of(args).subList(2, args.length));
        Maxwell.main(options.toArray(new String[0]));
    }

    @Override
    public AbstractProducer createProducer(MaxwellContext context) {
        return new AbstractProducer(context) {
            @Override
            public void push(RowMap row) throws Exception {
                String line = row.toJSON(outputConfig);
                if (line != null && row.shouldOutput(outputConfig)) {
                    OUT.println(row.pkToJson(RowMap.KeyFormat.HASH) + "\t" + line);
                    if (row.getTable().equals("canal_end")) {
                        Runtime.getRuntime().halt(0);
                    }
                }
                context.setPosition(row);
            }
        };
    }
}
