import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import com.alibaba.otter.canal.connector.core.producer.MQMessageUtils;
import com.alibaba.otter.canal.filter.aviater.AviaterRegexFilter;
import com.alibaba.otter.canal.parse.inbound.mysql.MysqlEventParser;
import com.alibaba.otter.canal.parse.index.AbstractLogPositionManager;
import com.alibaba.otter.canal.parse.support.AuthenticationInfo;
import com.alibaba.otter.canal.protocol.CanalEntry.Entry;
import com.alibaba.otter.canal.protocol.FlatMessage;
import com.alibaba.otter.canal.protocol.Message;
import com.alibaba.otter.canal.protocol.position.EntryPosition;
import com.alibaba.otter.canal.protocol.position.LogPosition;
import com.alibaba.otter.canal.sink.AbstractCanalEventSink;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadPoolExecutor;

/**
 * Alibaba canal, from the first log of a server: prints the flat messages that its Kafka producer would send, until a row of the
 * table `canal_end` comes. Arguments: port, the log's name; see scripts/make-changes.sh.
 */
public class Record {
    static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    static final ThreadPoolExecutor POOL = (ThreadPoolExecutor) Executors.newFixedThreadPool(1);

    static class Sink extends AbstractCanalEventSink<List<Entry>> {
        long id;

        @Override
        public boolean sink(List<Entry> entries, InetSocketAddress address, String destination) {
            Message message = new Message(++id, false, entries);
            MQMessageUtils.EntryRowData[] datas = MQMessageUtils.buildMessageData(message, POOL);
            for (FlatMessage flat : MQMessageUtils.messageConverter(datas, message.getId())) {
                OUT.println(new String(JSON.toJSONBytes(flat, JSONWriter.Feature.WriteNulls), StandardCharsets.UTF_8));
                if ("canal_end".equals(flat.getTable()) && "INSERT".equals(flat.getType())) {
                    OUT.flush();
                    Runtime.getRuntime().halt(0);
                }
            }
            return true;
        }
    }

    static class Positions extends AbstractLogPositionManager {
        LogPosition latest;

        @Override
        public LogPosition getLatestIndexBy(String destination) {
            return latest;
        }

        @Override
        public void persistLogPosition(String destination, LogPosition position) {
            latest = position;
        }
    }

    public static void main(String[] args) throws Exception {
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]));
        MysqlEventParser parser = new MysqlEventParser();
        parser.setDestination("record");
        parser.setSlaveId(ProcessHandle.current().pid());
        parser.setMasterInfo(new AuthenticationInfo(address, "record", "record"));
        parser.setMasterPosition(new EntryPosition(args[1], 4L));
        parser.setConnectionCharset("UTF-8");
        parser.setEventFilter(new AviaterRegexFilter(".*\\..*"));
        parser.setDetectingEnable(false);
        parser.setEnableTsdb(false);
        parser.setEventSink(new Sink());
        parser.setLogPositionManager(new Positions());
        parser.setParserExceptionHandler(error -> {
            Throwable cause = error;
            while (cause.getCause() != null) cause = cause.getCause();
            System.err.println("error: " + cause);
            System.exit(1);
        });
        parser.start();
        Thread.currentThread().join();
    }
}
