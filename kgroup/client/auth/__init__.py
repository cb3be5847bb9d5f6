"""Our identity, and its proof: SASL mechanisms as exchanges of tokens, without a socket.

`credentials` are frozen values whose secrets no `repr` shows; `login.Login` keeps one for as long as a
command runs and makes an exchange for each connection. `passwords` has PLAIN and SCRAM, `oauthbearer`
bearer tokens (`tokens`, from `oidc`, `assertions` or `unsecured`), `kerberos` GSSAPI, `msk_iam` Amazon's.
`printed` and `bounded` get a secret from a command and give up in time.
"""
