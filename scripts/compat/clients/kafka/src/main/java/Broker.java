/** The program that Kafka's kafka-server-start.sh runs. */
public class Broker {
    public static void main(String[] args) throws Exception {
        kafka.Kafka.main(args);
    }
}
