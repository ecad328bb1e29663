import com.alibaba.otter.canal.common.AbstractCanalLifeCycle;
import com.alibaba.otter.canal.filter.aviater.AviaterRegexFilter;
import com.alibaba.otter.canal.parse.inbound.mysql.MysqlEventParser;
import com.alibaba.otter.canal.parse.index.AbstractLogPositionManager;
import com.alibaba.otter.canal.parse.support.AuthenticationInfo;
import com.alibaba.otter.canal.protocol.CanalEntry.Column;
import com.alibaba.otter.canal.protocol.CanalEntry.Entry;
import com.alibaba.otter.canal.protocol.CanalEntry.EntryType;
import com.alibaba.otter.canal.protocol.CanalEntry.EventType;
import com.alibaba.otter.canal.protocol.CanalEntry.RowChange;
import com.alibaba.otter.canal.protocol.CanalEntry.RowData;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.protocol.position.LogIdentity;
import com.alibaba.otter.canal.protocol.position.LogPosition;
import com.alibaba.otter.canal.sink.AbstractCanalEventSink;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;

/** Alibaba canal's parser: prints the rows of compat.t and where to go on; see crates/interfaces/cli/tests/compat/clients. SERIAL: on one thread. */
public class Parser {
    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    static class Sink extends AbstractCanalEventSink<List<Entry>> {
        @Override
        public boolean sink(List<Entry> entries, InetSocketAddress address, String destination) {
            for (Entry entry : entries) if (entry.getEntryType() == EntryType.ROWDATA) print(entry);
            return true;
        }

        static String text(Column column) {
            if (column.getIsNull()) return "NULL";
            // It writes 0.00 as 0.0.
            return column.getMysqlType().startsWith("decimal")
                ? new BigDecimal(column.getValue()).setScale(2).toPlainString()
                : column.getValue();
        }

        void print(Entry entry) {
            try {
                RowChange change = RowChange.parseFrom(entry.getStoreValue());
                if (change.getEventType() != EventType.INSERT) return;
                for (RowData row : change.getRowDatasList()) {
                    List<Column> columns = row.getAfterColumnsList();
                    OUT.println("row " + columns.stream()
                        .map(Sink::text)
                        .collect(Collectors.joining("\t")));
                }
            } catch (com.google.protobuf.InvalidProtocolBufferException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** What canal would keep in a file or in ZooKeeper: it is told after the sink has a transaction. */
    static class Positions extends AbstractLogPositionManager {
        final boolean byGtid;
        LogPosition latest;

        Positions(boolean byGtid) {
            this.byGtid = byGtid;
        }

        @Override
        public LogPosition getLatestIndexBy(String destination) {
            return latest;
        }

        @Override
        public void persistLogPosition(String destination, LogPosition position) {
            latest = position;
            EntryPosition at = position.getPostion();
            OUT.println("at " + (byGtid ? at.getGtid()
                : at.getJournalName() + ":" + at.getPosition() + ":" + at.getTimestamp() + ":" + at.getServerId()));
        }
    }

    public static void main(String[] args) throws Exception {
        boolean byGtid = args[3].equals("gtid");
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]));
        Positions positions = new Positions(byGtid);
        EntryPosition begin;
        if (byGtid) {
            begin = new EntryPosition("", 4L);
            begin.setGtid(args[4]);
        } else {
            // What it has kept itself has a time and a server too.
            String[] place = args[4].split(":");
            begin = new EntryPosition(place[0], Long.parseLong(place[1]));
            if (place.length == 4) {
                begin.setTimestamp(Long.parseLong(place[2]));
                begin.setServerId(Long.parseLong(place[3]));
                positions.latest = new LogPosition();
                positions.latest.setIdentity(new LogIdentity(address, -1L));
                positions.latest.setPostion(begin);
            }
        }
        MysqlEventParser parser = new MysqlEventParser();
        parser.setDestination("compat");
        parser.setSlaveId(ProcessHandle.current().pid());
        parser.setMasterInfo(new AuthenticationInfo(address, args[1], args[2]));
        parser.setMasterPosition(begin);
        parser.setIsGTIDMode(byGtid);
        parser.setConnectionCharset("UTF-8");
        parser.setEventFilter(new AviaterRegexFilter("compat\\.t"));
        parser.setDetectingEnable(false);
        parser.setEnableTsdb(false);
        if (System.getenv("SERIAL") != null) parser.setParallel(false);
        parser.setEventSink(new Sink());
        parser.setLogPositionManager(positions);
        // It would try for ever.
        parser.setParserExceptionHandler(error -> {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            System.err.println("error: " + cause.getMessage());
            System.exit(1);
        });
        parser.start();
        Thread.currentThread().join();
    }
}
