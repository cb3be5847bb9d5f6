"""Every property of a client's security that Kafka 4.3.1 or librdkafka knows, and what kgroup does with it.

Imported by every command that reads settings, so names only.
"""

USED = frozenset(
    {
        "security.protocol",
        "ssl.truststore.type",
        "ssl.truststore.location",
        "ssl.keystore.type",
        "ssl.keystore.location",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.crl.location",
        "ssl.protocol",
        "ssl.enabled.protocols",
        "ssl.cipher.suites",
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
        "https.ca.location",
        "sasl.mechanism",
        "sasl.username",
        "sasl.kerberos.service.name",
        "sasl.kerberos.keytab",
        "sasl.kerberos.principal",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.retry.backoff.ms",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.callback.handler.class",
        "sasl.client.callback.handler.class",
        "sasl.login.class",
        "sasl.oauthbearer.method",
        "sasl.oauthbearer.grant.type",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.template.file",
        "sasl.oauthbearer.assertion.jwt.template.file",
        "enable.sasl.oauthbearer.unsecure.jwt",
    }
)
"""Used, and harmless to print."""
SECRET = frozenset(
    {
        "ssl.truststore.password",
        "ssl.truststore.certificates",
        "ssl.keystore.password",
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.certificate.pem",
        "ssl.ca.pem",
        "https.ca.pem",
        "sasl.password",
        "sasl.jaas.config",
        "sasl.oauthbearer.token",
        # An address may contain a user's name and password, and extensions anything a proxy wants.
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.extensions",
        "sasl.oauthbearer.config",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    }
)
"""Used, and never printed."""
CERTIFICATES_ONLY = frozenset(
    {
        "ssl.truststore.certificates",
        "ssl.keystore.certificate.chain",
        "ssl.certificate.pem",
        "ssl.ca.pem",
        "https.ca.pem",
        # Its password protects only the store's integrity.
        "ssl.truststore.password",
        "sasl.oauthbearer.token.endpoint.url",
        "sasl.oauthbearer.extensions",
    }
)
"""Not printed, as a key may have slipped in, but no reason to refuse a file that others may read."""
WITHOUT_EFFECT = {
    "ssl.provider": "TLS is OpenSSL's here",
    "ssl.secure.random.implementation": "randomness is the operating system's",
    "ssl.keymanager.algorithm": "the key store's key is shown as it is",
    "ssl.curves.list": "OpenSSL's choice",
    "ssl.sigalgs.list": "OpenSSL's choice",
    "ssl.engine.id": "of OpenSSL engines",
    "sasl.kerberos.kinit.cmd": "the ticket is taken from the keytab or the cache itself",
    "sasl.kerberos.min.time.before.relogin": "a ticket is taken when it is needed",
    "sasl.kerberos.ticket.renew.jitter": "a ticket is taken when it is needed",
    "sasl.kerberos.ticket.renew.window.factor": "a ticket is taken when it is needed",
    "sasl.oauthbearer.scope.claim.name": "the broker reads the token",
    "sasl.oauthbearer.sub.claim.name": "the broker reads the token",
    "sasl.oauthbearer.clock.skew.seconds": "for brokers",
    "sasl.oauthbearer.expected.audience": "for brokers",
    "sasl.oauthbearer.expected.issuer": "for brokers",
    "sasl.oauthbearer.jwks.endpoint.url": "for brokers",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "for brokers",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "for brokers",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "for brokers",
}
"""Known, harmless, and without effect here; the value says why."""
REFUSED = {
    "ssl.engine.factory.class": "a Java class decides what to trust; name a store in ssl.truststore.location",
    "ssl.engine.location": "an OpenSSL engine holds the key; export it to ssl.keystore.location",
    "ssl.providers": "OpenSSL providers may hold keys and decide what to trust; use a store",
    "ssl.ca.certificate.stores": "certificate stores of Windows; export the authority to ssl.ca.location",
    "ssl.trustmanager.algorithm": "Java decides what to trust; name a store in ssl.truststore.location",
    "security.providers": "Java classes may decide what to trust; name a store in ssl.truststore.location",
    "sasl.oauthbearer.metadata.authentication.type": "a cloud's own endpoint gives the token; "
    "let sasl.oauthbearer.token-command fetch it",
    "sasl.oauthbearer.assertion.private.key.pem": "put the key into a file, and name it in "
    "sasl.oauthbearer.assertion.private.key.file",
}
"""Would change trust or identity, and cannot be obeyed here; the value says what to use.

With its own default (`AS_DEFAULT`) a property has no effect.
"""
AS_DEFAULT = {
    "ssl.engine.factory.class": ("org.apache.kafka.common.security.ssl.DefaultSslEngineFactory",),
    "ssl.trustmanager.algorithm": ("PKIX", "SunX509"),
    "ssl.ca.certificate.stores": ("Root",),
    "sasl.oauthbearer.metadata.authentication.type": ("none",),
}
FROM_COMMAND, FROM_ENVIRONMENT = "-command", "-env"
"""Behind the name of a secret: a command that prints it, a variable that holds it."""
ELSEWHERE = frozenset(name + suffix for name in SECRET for suffix in (FROM_COMMAND, FROM_ENVIRONMENT))
KNOWN = USED | SECRET | WITHOUT_EFFECT.keys() | REFUSED.keys() | ELSEWHERE
HARMLESS = (
    USED
    | WITHOUT_EFFECT.keys()
    | REFUSED.keys()
    | {name for name in ELSEWHERE if name.endswith(FROM_ENVIRONMENT)}
)
ALIASES = {"sasl.mechanisms": "sasl.mechanism"}
