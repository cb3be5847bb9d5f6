"""Groups of a cluster that is reached by REST alone: Confluent's REST API v3, as its OpenAPI document has it.

`api.py` asks (one URL, one cluster, GET only), `documents.py` reads what comes back and trusts none of it,
`groups.py` lists, describes and measures groups in the admin layer's models. REST tells less than brokers do:
what it does not tell is None, and where it may leave something out without a word an error says so.
"""
