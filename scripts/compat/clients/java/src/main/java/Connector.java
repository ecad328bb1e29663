import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventHeaderV4;
import com.github.shyiko.mysql.binlog.event.TableMapEventData;
import com.github.shyiko.mysql.binlog.event.TransactionPayloadEventData;
import com.github.shyiko.mysql.binlog.event.WriteRowsEventData;
import com.github.shyiko.mysql.binlog.network.SSLMode;
import java.io.PrintStream;
import java.io.Serializable;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.text.SimpleDateFormat;
import java.util.Date;
import java.util.TimeZone;

/** mysql-binlog-connector-java: prints the rows of compat.t and where to go on; see crates/interfaces/cli/tests/compat/clients. */
public class Connector {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static final SimpleDateFormat DATE = new SimpleDateFormat("yyyy-MM-dd HH:mm:ss");

    final BinaryLogClient client;
    final boolean byGtid;
    long table = -1;

    Connector(String[] args) {
        client = new BinaryLogClient("127.0.0.1", Integer.parseInt(args[0]), args[1], args[2]);
        client.setServerId(ProcessHandle.current().pid());
        client.setKeepAlive(false);
        // By default 3 s, too short for TLS on a busy machine.
        client.setConnectTimeout(60_000);
        if (System.getenv("TLS") != null) client.setSSLMode(SSLMode.REQUIRED);
        byGtid = args[3].equals("gtid");
        if (byGtid) {
            client.setGtidSet(args[4]);
        } else {
            int colon = args[4].lastIndexOf(':');
            client.setBinlogFilename(args[4].substring(0, colon));
            client.setBinlogPosition(Long.parseLong(args[4].substring(colon + 1)));
        }
        client.registerEventListener(event -> take(event, ((EventHeaderV4) event.getHeader()).getNextPosition()));
    }

    void take(Event event, long nextPosition) {
        switch (event.getHeader().getEventType()) {
            case TRANSACTION_PAYLOAD -> {
                TransactionPayloadEventData data = event.getData();
                for (Event inner : data.getUncompressedEvents()) take(inner, nextPosition);
            }
            case TABLE_MAP -> {
                TableMapEventData data = event.getData();
                table = data.getTable().equals("t") ? data.getTableId() : -1;
            }
            case WRITE_ROWS, EXT_WRITE_ROWS -> {
                WriteRowsEventData data = event.getData();
                if (data.getTableId() != table) return;
                for (Serializable[] row : data.getRows()) {
                    Date at = (Date) row[3];
                    OUT.println("row " + row[0] + "\t" + row[1] + "\t" + ((BigDecimal) row[2]).toPlainString() + "\t"
                        + (at == null ? "NULL" : DATE.format(at)));
                }
            }
            case XID -> OUT.println("at " + (byGtid ? client.getGtidSet() : client.getBinlogFilename() + ":" + nextPosition));
            default -> { }
        }
    }

    public static void main(String[] args) throws Exception {
        DATE.setTimeZone(TimeZone.getTimeZone("UTC"));
        try {
            new Connector(args).client.connect();
        } catch (Exception error) {
            System.err.println(error);
        }
        System.exit(1);
    }
}
