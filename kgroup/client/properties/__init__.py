"""A client's properties, in Java's names and in librdkafka's, as one `Security` value.

`catalogue` knows every property of security that Kafka 4.3.1 or librdkafka has, and what is done with it;
`given` keeps the source of each, so that an error can say where to look. `tls`, `sasl`, `jaas`, `oauthbearer`
and `aws` read their own. Entry point: `security.security_of`. Guarantee: a property that would change what is
trusted is obeyed or refused, never ignored.
"""
