/** The program that Kafka's kafka-console-consumer.sh runs. */
public class Consumer {
    public static void main(String[] args) throws Exception {
        org.apache.kafka.tools.consumer.ConsoleConsumer.main(args);
    }
}
