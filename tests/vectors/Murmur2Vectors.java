import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.common.utils.Utils;

/** Prints murmur2.json: keys, and what the Java client makes of them. See README.md. */
public class Murmur2Vectors {
    private static final int[] PARTITION_COUNTS = {1, 3, 4, 12, 100};
    private static final int[] LONG_LENGTHS = {
        63, 64, 65, 66, 67, 100, 127, 128, 129, 255, 256, 257, 1000, 1023, 1024, 1025, 1030, 4099
    };
    private static final String[] TEXTS = {
        "order-42", "user:123456789", "{\"id\":42}", "{\"tenant\":\"a\",\"id\":7}",
        "550e8400-e29b-41d4-a716-446655440000", "München", "Ελλάδα", "Привет", "日本語", "한국어",
        "שלום", "naïve café", "😀", "👩‍👩‍👧‍👦", "e\u0301", "\u0000", " ", "\n", "ÿ"
    };

    public static void main(String[] args) {
        List<byte[]> keys = new ArrayList<>();
        Random random = new Random(42);
        for (int length = 0; length <= 40; length++) {
            keys.addAll(keysOf(length, random));
        }
        for (int length : LONG_LENGTHS) {
            keys.add(randomKey(length, random));
        }
        for (String text : TEXTS) {
            keys.add(text.getBytes(StandardCharsets.UTF_8));
        }

        System.out.println("{");
        System.out.println("\"kafka_clients\": \"" + AppInfoParser.getVersion() + "\",");
        System.out.println("\"partition_counts\": " + Arrays.toString(PARTITION_COUNTS) + ",");
        System.out.println("\"vectors\": [");
        for (int i = 0; i < keys.size(); i++) {
            System.out.println(vector(keys.get(i)) + (i + 1 < keys.size() ? "," : ""));
        }
        System.out.println("]");
        System.out.println("}");
    }

    private static List<byte[]> keysOf(int length, Random random) {
        byte[] zeros = new byte[length];
        byte[] ones = new byte[length];
        byte[] rising = new byte[length];
        byte[] high = new byte[length];
        Arrays.fill(ones, (byte) 0xff);
        for (int i = 0; i < length; i++) {
            rising[i] = (byte) i;
            high[i] = (byte) (0x80 + 7 * i % 0x80);
        }
        byte[] anything = randomKey(length, random);
        return length == 0 ? List.of(zeros) : List.of(zeros, ones, rising, high, anything);
    }

    private static byte[] randomKey(int length, Random random) {
        byte[] key = new byte[length];
        random.nextBytes(key);
        return key;
    }

    private static String vector(byte[] key) {
        int hash = Utils.murmur2(key);
        int[] partitions = new int[PARTITION_COUNTS.length];
        for (int i = 0; i < partitions.length; i++) {
            partitions[i] = Utils.toPositive(hash) % PARTITION_COUNTS[i];
            if (partitions[i] != BuiltInPartitioner.partitionForKey(key, PARTITION_COUNTS[i])) {
                throw new AssertionError("the producer chooses another partition");
            }
        }
        return "{\"key\": \"" + HexFormat.of().formatHex(key) + "\", \"murmur2\": " + hash
            + ", \"partitions\": " + Arrays.toString(partitions) + "}";
    }
}
