// One signed request with Java (17 or later), without libraries.
//
//   export CERTIFICATE=.bank-emulator/tpps/demo/certificate.pem KEY=.bank-emulator/tpps/demo/key.pem
//   java Sign.java GET  http://127.0.0.1:8080/v1/accounts
//   java Sign.java POST http://127.0.0.1:8080/v1/payments/sepa-credit-transfers '{"instructedAmount": ...}'
//
// After the first SCA the redirect carries psu-id and tpp-session-id: set PSU_ID and SESSION_ID to them. Before it, a
// payment may name its customer by the national identity number: PSU_IDENTITY.

import java.io.ByteArrayInputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.MessageDigest;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import javax.security.auth.x500.X500Principal;

public class Sign {
    // Each of these that a request carries must be signed.
    static final List<String> SIGNED =
        List.of("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri");

    // RFC 7231: always two digits for the day, always GMT.
    static final DateTimeFormatter HTTP_DATE =
        DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    static Map<String, String> signed(String method, URI uri, byte[] body, Map<String, String> given,
                                      X509Certificate certificate, PrivateKey key) throws GeneralSecurityException {
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("date", ZonedDateTime.now(ZoneOffset.UTC).format(HTTP_DATE));
        headers.put("x-request-id", UUID.randomUUID().toString());
        headers.put("tpp-session-id", UUID.randomUUID().toString());
        headers.put("tpp-redirect-uri", "https://tpp.example/callback");
        headers.put("psu-ip-address", "192.0.2.1");
        headers.put("x-accept-fix", "amount-as-string");
        headers.put("tpp-signature-certificate", base64(certificate.getEncoded()));
        headers.putAll(given);
        if (body.length > 0) { // over exactly the bytes that are sent
            headers.put("content-type", "application/json");
            headers.put("digest", "SHA-256=" + base64(MessageDigest.getInstance("SHA-256").digest(body)));
        }

        // One line for each signed header; (request-target) ties the signature to this address.
        String query = uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery();
        List<String> names = new ArrayList<>(List.of("(request-target)"));
        List<String> lines = new ArrayList<>();
        lines.add("(request-target): " + method.toLowerCase(Locale.ROOT) + " " + uri.getRawPath() + query);
        for (String name : SIGNED) {
            if (headers.containsKey(name)) {
                names.add(name);
                lines.add(name + ": " + headers.get(name));
            }
        }
        Signature signer = Signature.getInstance("SHA256withRSA"); // PKCS #1 v1.5
        signer.initSign(key);
        signer.update(String.join("\n", lines).getBytes(StandardCharsets.UTF_8));

        String issuer = certificate.getIssuerX500Principal().getName(X500Principal.RFC2253);
        String keyId = String.format("SN=%X,CA=%s", certificate.getSerialNumber(), issuer);
        String header = "keyId=\"" + keyId + "\",algorithm=\"rsa-sha256\",headers=\"" + String.join(" ", names)
            + "\",signature=\"" + base64(signer.sign()) + "\"";
        if (!StandardCharsets.US_ASCII.newEncoder().canEncode(header)) { // as a MIME word
            header = "=?utf-8?B?" + base64(header.getBytes(StandardCharsets.UTF_8)) + "?=";
        }
        headers.put("signature", header);
        return headers;
    }

    static String base64(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    static PrivateKey readKey(Path file) throws Exception {
        String pem = Files.readString(file).replaceAll("-----[A-Z ]+-----|\\s", "");
        return KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(pem)));
    }

    static X509Certificate readCertificate(Path file) throws Exception {
        var bytes = new ByteArrayInputStream(Files.readAllBytes(file));
        return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(bytes);
    }

    public static void main(String[] arguments) throws Exception {
        Map<String, String> environment = System.getenv();
        if (arguments.length < 2 || !environment.containsKey("CERTIFICATE") || !environment.containsKey("KEY")) {
            System.err.println("Usage: CERTIFICATE=certificate.pem KEY=key.pem java Sign.java METHOD URL [BODY]");
            System.exit(2);
        }
        String method = arguments[0];
        URI uri = URI.create(arguments[1]);
        byte[] body = (arguments.length > 2 ? arguments[2] : "").getBytes(StandardCharsets.UTF_8);
        Map<String, String> given = new LinkedHashMap<>();
        Map.of("PSU_ID", "psu-id", "SESSION_ID", "tpp-session-id", "PSU_IDENTITY", "x-psu-identity").forEach((from, to) -> {
            if (!environment.getOrDefault(from, "").isEmpty()) given.put(to, environment.get(from));
        });

        HttpRequest.Builder request = HttpRequest.newBuilder(uri).method(method, body.length == 0
            ? HttpRequest.BodyPublishers.noBody() : HttpRequest.BodyPublishers.ofByteArray(body));
        signed(method, uri, body, given, readCertificate(Path.of(environment.get("CERTIFICATE"))),
            readKey(Path.of(environment.get("KEY")))).forEach(request::setHeader);

        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        System.out.println(answer.body());
        System.out.println("HTTP " + answer.statusCode());
    }
}
