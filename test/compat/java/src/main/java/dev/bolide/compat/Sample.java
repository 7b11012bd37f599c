package dev.bolide.compat;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;

/** One message as it is sent, made from its number alone: what must come out byte for byte. */
final class Sample {
    final int number;
    final byte[] body;
    final String key;
    final String tag;
    final Map<String, String> properties = new LinkedHashMap<>();

    Sample(int number) {
        this.number = number;
        boolean large = number % 100 == 99; // over 4 KiB: compressed by the classic client
        body = new byte[large ? 6000 : 4 + (int) ((number * 7919L) % 1500)];
        if (large) {
            for (int i = 4; i < body.length; i++) {
                body[i] = (byte) (i / 64);
            }
        } else {
            new Random(number).nextBytes(body);
        }
        ByteBuffer.wrap(body).putInt(number);
        key = "key-" + number;
        tag = "tag" + number % 3;
        properties.put("number", Integer.toString(number));
        properties.put("text", "größe 消息 " + number + " / \"quoted\" {a:1} = ; , 🚀");
        properties.put("spaces", " a  b ");
    }

    static int numberOf(byte[] body) {
        return ByteBuffer.wrap(body).getInt();
    }
}
