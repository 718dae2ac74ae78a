import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Conversions;
import org.apache.avro.Schema;
import org.apache.avro.data.TimeConversions;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * A Kafka consumer of a mirrored topic whose keys and values are Avro. It prints each record as a
 * line of JSON, with the schema it was written with, and commits; Ctrl-C ends it.
 *
 *     java -cp JARS examples/java/AvroRows.java SERVERS REGISTRY TOPIC GROUP
 *
 * JARS are kafka-clients and avro with what they need. REGISTRY is a log's own registry, which
 * `duolog serve` has at URL/registry, or any other that speaks Confluent's REST API. The variable
 * DUOLOG_TOKEN holds the token, where it wants one.
 */
public class AvroRows {
    private static final GenericData AVRO = new GenericData();

    public static void main(String[] args) throws Exception {
        AVRO.addLogicalTypeConversion(new Conversions.DecimalConversion());
        AVRO.addLogicalTypeConversion(new TimeConversions.DateConversion());
        AVRO.addLogicalTypeConversion(new TimeConversions.TimestampMicrosConversion());
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0],
            "group.id", args[3],
            "auto.offset.reset", "earliest",
            "enable.auto.commit", "false",
            "allow.auto.create.topics", "false"); // the mirror makes it
        PrintStream rows = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        FromRegistry avro = new FromRegistry(args[1]);
        try (KafkaConsumer<Object, Object> consumer = new KafkaConsumer<>(settings, avro, avro)) {
            Thread reading = Thread.currentThread();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(consumer, reading)));
            consumer.subscribe(List.of(args[2]));
            while (true) {
                ConsumerRecords<Object, Object> records = consumer.poll(Duration.ofSeconds(10));
                for (ConsumerRecord<Object, Object> record : records) {
                    rows.printf(
                        "{\"partition\": %d, \"offset\": %d, \"key\": %s, \"value\": %s}%n",
                        record.partition(), record.offset(),
                        AVRO.toString(record.key()), AVRO.toString(record.value()));
                }
                if (!records.isEmpty()) {
                    rows.flush();
                    consumer.commitSync(); // the group is there in the log too
                }
            }
        } catch (WakeupException stopped) {
            // The group has been left, and another consumer goes on at once.
        }
    }

    private static void stop(KafkaConsumer<?, ?> consumer, Thread reading) {
        consumer.wakeup();
        try {
            reading.join();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Bytes as Confluent's serializers write them: a zero, a schema's id, the body. */
    private static class FromRegistry implements Deserializer<Object> {
        private final HttpClient http = HttpClient.newHttpClient();
        private final Map<Integer, GenericDatumReader<Object>> readers = new HashMap<>();
        private final String registry;

        FromRegistry(String registry) {
            this.registry = registry;
        }

        @Override
        public Object deserialize(String topic, byte[] content) {
            if (content == null) {
                return null; // a tombstone, or no key
            }
            if (content.length < 5 || content[0] != 0) {
                throw new SerializationException("A record of " + topic + " names no schema.");
            }
            int schemaId = ByteBuffer.wrap(content).getInt(1);
            try {
                return readers.computeIfAbsent(schemaId, this::readerOf).read(
                    null, DecoderFactory.get().binaryDecoder(content, 5, content.length - 5, null));
            } catch (IOException error) {
                throw new SerializationException("A record of " + topic + " is damaged.", error);
            }
        }

        private GenericDatumReader<Object> readerOf(int schemaId) {
            URI address = URI.create(registry + "/schemas/ids/" + schemaId);
            HttpRequest.Builder request = HttpRequest.newBuilder(address);
            String token = System.getenv("DUOLOG_TOKEN");
            if (token != null) {
                request.header("Authorization", "Bearer " + token);
            }
            try {
                HttpResponse<String> answer =
                    http.send(request.build(), HttpResponse.BodyHandlers.ofString());
                if (answer.statusCode() != 200) {
                    throw new SerializationException(address + " answers " + answer.body());
                }
                String text = new ObjectMapper().readTree(answer.body()).get("schema").asText();
                Schema schema = new Schema.Parser().parse(text);
                return new GenericDatumReader<>(schema, schema, AVRO);
            } catch (IOException error) {
                throw new SerializationException(address + " cannot be asked.", error);
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                throw new SerializationException(interrupted);
            }
        }
    }
}
