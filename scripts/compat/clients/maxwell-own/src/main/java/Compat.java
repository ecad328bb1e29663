import com.zendesk.maxwell.Maxwell;
import com.zendesk.maxwell.MaxwellContext;
import com.zendesk.maxwell.producer.AbstractProducer;
import com.zendesk.maxwell.producer.ProducerFactory;
import com.zendesk.maxwell.replication.BinlogPosition;
import com.zendesk.maxwell.row.RowMap;

/**
 * Maxwell with one host, as a client of the matrix: prints the rows of compat.t, and where to go on after each transaction; see
 * crates/interfaces/cli/tests/compat/clients. It keeps its schemas in the database `maxwell` of that host.
 */
public class Compat implements ProducerFactory {
    public static void main(String[] args) throws Exception {
        Maxwell.main(new String[] {"--host=127.0.0.1", "--port=" + args[0], "--user=" + args[1], "--password=" + args[2],
            "--jdbc_options=useSSL=false&allowPublicKeyRetrieval=true", "--replica_server_id=" + ProcessHandle.current().pid(),
            "--init_position=" + args[4] + ":0", "--custom_producer.factory=" + Compat.class.getName()});
    }

    static Object or(Object value, String otherwise) {
        return value == null ? otherwise : value;
    }

    @Override
    public AbstractProducer createProducer(MaxwellContext context) {
        return new AbstractProducer(context) {
            @Override
            public void push(RowMap row) throws Exception {
                if ("compat".equals(row.getDatabase()) && "t".equals(row.getTable())) {
                    Follow.OUT.println("row " + row.getData("id") + "\t" + row.getData("word") + "\t" + row.getData("price")
                        + "\t" + or(row.getData("at"), "NULL"));
                }
                if (row.isTXCommit()) {
                    BinlogPosition place = row.getNextPosition().getBinlogPosition();
                    Follow.OUT.println("at " + place.getFile() + ":" + place.getOffset());
                }
                context.setPosition(row);
            }
        };
    }
}
