"""Key and trust stores as Java, librdkafka and OpenSSL have them, for clients and brokers alike.

`values` name a store or a text and the setting it comes from, `reading` opens PEM, PKCS12 and JKS (`jks`, in
a format that no maintained library reads well; decision 0035), `loading` puts them into a TLS context. The
caller knows which property or setting names a store.

Guarantees: a file's bytes decide its kind; a store that cannot be opened is a ConfigError that names the
setting and the file. No password and no key is in an error or a repr.
"""
