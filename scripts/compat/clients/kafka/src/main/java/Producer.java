/** The program that Kafka's kafka-console-producer.sh runs. */
public class Producer {
    public static void main(String[] args) throws Exception {
        org.apache.kafka.tools.ConsoleProducer.main(args);
    }
}
