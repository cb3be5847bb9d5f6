"""GSSAPI: Kerberos tickets as an exchange of tokens (RFC 4752), with no security layer, as Kafka wants it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kgroup.client.auth.bounded import within
from kgroup.client.auth.credentials import GSSAPI, Kerberos
from kgroup.client.auth.exchanges import Exchange, broker_is_wrong, not_authenticated
from kgroup.errors import ConfigError, KgroupError
from kgroup.extras import require_extra

if TYPE_CHECKING:
    import gssapi

_NO_LAYER = 1
_KDC = "is the KDC of /etc/krb5.conf (or KRB5_CONFIG) up and reachable from here?"


def exchange(login: Kerberos, host: str, within_s: float) -> Exchange:
    """Send a ticket for the service on `host`, and ask for no layer of GSSAPI's own."""
    require_extra("kerberos", "GSSAPI", "gssapi")
    import gssapi

    target = gssapi.Name(f"{login.service}@{host}", gssapi.NameType.hostbased_service)
    context = within(within_s, lambda: _context(login, target), "Kerberos (the KDC)", _KDC)
    return _exchange(context, login, host, within_s)


def _exchange(context: gssapi.SecurityContext, login: Kerberos, host: str, within_s: float) -> Exchange:
    import gssapi

    heard: bytes | None = None
    try:
        while True:
            # The first step asks the KDC for a ticket.
            said = within(within_s, lambda heard=heard: context.step(heard), "Kerberos (the KDC)", _KDC)  # type: ignore[misc]
            complete = context.complete
            heard = yield said or b""
            if complete:
                break
        # The broker's last message lists the layers it offers.
        offer = heard
        offered = context.unwrap(offer).message
        if len(offered) != 4 or not offered[0] & _NO_LAYER:
            raise broker_is_wrong(GSSAPI, "it insists on a security layer, which Kafka has not")
        yield context.wrap(bytes((_NO_LAYER, 0, 0, 0)), False).message
    except gssapi.exceptions.GSSError as error:
        raise _failed(error, login, host) from None


def _context(login: Kerberos, target: gssapi.Name) -> gssapi.SecurityContext:
    import gssapi

    flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
    try:
        credentials = _credentials(login)
        return gssapi.SecurityContext(name=target, creds=credentials, flags=flags, usage="initiate")
    except gssapi.exceptions.GSSError as error:
        raise _failed(error, login, str(target).partition("@")[2]) from None


def _credentials(login: Kerberos) -> gssapi.Credentials | None:
    """Return the ticket of the keytab or the cache that was named; None is the default cache's."""
    import gssapi

    store = {}
    if login.keytab:
        # Kerberos would report a missing ticket instead of a missing keytab.
        try:
            with open(login.keytab, "rb"):
                pass
        except OSError as error:
            raise ConfigError(f"the keytab {login.keytab} cannot be read: {error.strerror}") from None
        # Into a cache of this process alone, so that the user's default ticket is not replaced.
        store = {"client_keytab": login.keytab, "ccache": f"MEMORY:kgroup-{id(login)}"}
    elif login.cache:
        store = {"ccache": login.cache}
    name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal) if login.principal else None
    if not store and name is None:
        return None
    return gssapi.Credentials(usage="initiate", name=name, store=store or None)


def _failed(error: gssapi.exceptions.GSSError, login: Kerberos, host: str) -> KgroupError:
    """Return Kerberos's reason in one sentence; the minor status says more than the major."""
    said = " ".join((error.get_all_statuses(error.min_code, False) or [str(error)])[0].split())
    hint = "klist shows the tickets; kinit gets one"
    lowered = said.lower()
    if "skew" in lowered:
        hint = "this machine's clock differs from the KDC's (date -u)"
    elif "not found in kerberos database" in lowered:
        hint = f"does the KDC know {login.service}/{host}? check sasl.kerberos.service.name and the address"
    elif login.keytab and "cache" in lowered:
        said = f"the keytab {login.keytab} holds no key of {login.principal} that fits"
        hint = f"klist -k {login.keytab} shows whose keys it holds"
    elif "keytab" in lowered or "key table" in lowered:
        hint = "does the keytab exist, may it be read, and does it hold this principal? klist -k FILE"
    elif "cannot contact any kdc" in lowered or "cannot find kdc" in lowered:
        hint = _KDC
    return not_authenticated(f"Kerberos gives no ticket for {login.service} on {host}: {said}", hint)
