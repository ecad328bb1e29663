/** The program that Kafka's kafka-storage.sh runs. */
public class Storage {
    public static void main(String[] args) throws Exception {
        kafka.tools.StorageTool.main(args);
    }
}
