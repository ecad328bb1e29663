/** The program that Kafka's kafka-topics.sh runs. */
public class Topics {
    public static void main(String[] args) throws Exception {
        org.apache.kafka.tools.TopicCommand.main(args);
    }
}
