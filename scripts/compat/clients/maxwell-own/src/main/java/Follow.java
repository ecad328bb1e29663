import com.zendesk.maxwell.Maxwell;
import com.zendesk.maxwell.MaxwellContext;
import com.zendesk.maxwell.producer.AbstractProducer;
import com.zendesk.maxwell.producer.ProducerFactory;
import com.zendesk.maxwell.row.RowMap;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Maxwell with one host, where it also keeps what it keeps for itself: prints each row. Arguments: port, password, and the place at
 * which it begins, as FILE:POSITION; without one, it goes on where it was.
 */
public class Follow implements ProducerFactory {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        List<String> options = new ArrayList<>(List.of("--host=127.0.0.1", "--port=" + args[0], "--user=maxwell", "--password=" + args[1],
            "--custom_producer.factory=" + Follow.class.getName()));
        if (args.length > 2) {
            options.add("--init_position=" + args[2] + ":0");
        }
        Maxwell.main(options.toArray(new String[0]));
    }

    @Override
    public AbstractProducer createProducer(MaxwellContext context) {
        return new AbstractProducer(context) {
            @Override
            public void push(RowMap row) throws Exception {
                String line = row.toJSON(outputConfig);
                if (line != null && row.shouldOutput(outputConfig)) {
                    OUT.println(line);
                }
                context.setPosition(row);
            }
        };
    }
}
