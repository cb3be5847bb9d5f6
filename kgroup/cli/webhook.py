"""Tell a web address about something: one POST with a JSON body."""

from collections.abc import Mapping

TIMEOUT_S = 5.0


def post(url: str, body: Mapping[str, object]) -> str | None:
    """Post and give None, or say in words why it was not taken; never raises for a failed delivery."""
    import httpx

    try:
        answer = httpx.post(url, json=dict(body), timeout=TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{url} cannot be notified: {error or type(error).__name__}"
    return None if answer.is_success else f"{url} answered {answer.status_code}"
