package kgroup.interop;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Prints what Kafka calls the bearers of certificates: the rules, then files of one certificate each. */
public final class Names {
    private Names() {}

    public static void main(String[] args) throws Exception {
        SslPrincipalMapper mapper = SslPrincipalMapper.fromRules(args[0]);
        CertificateFactory factory = CertificateFactory.getInstance("X.509");
        for (int i = 1; i < args.length; i++) {
            try (InputStream in = Files.newInputStream(Path.of(args[i]))) {
                X509Certificate certificate = (X509Certificate) factory.generateCertificate(in);
                System.out.println(escaped(named(mapper, certificate.getSubjectX500Principal().getName())));
            }
        }
    }

    private static String named(SslPrincipalMapper mapper, String name) {
        try {
            return mapper.getName(name);
        } catch (IOException nothingApplies) {
            return "(nobody)";
        }
    }

    private static String escaped(String name) {
        StringBuilder out = new StringBuilder();
        name.chars().forEach(c -> out.append(c >= ' ' && c < 127 ? "" + (char) c : String.format("{%04x}", c)));
        return out.toString();
    }
}
