"""Posts of `watch --notify`: signed, in order, tried again, and named where they did not arrive."""

import json
import subprocess
import threading
from base64 import b64encode

import httpx
import pytest
import respx

from kgroup.cli.env.webhook import PostLimits, Webhook, key_of, shown, signed
from kgroup.cli.exit_codes import ExitCode
from kgroup.client.retry import Backoff
from kgroup.errors import ConfigError

URL = "https://hooks.example.net/T000/secret-path"
QUICK = PostLimits(tries=4, backoff=Backoff(first_s=0.001, longest_s=0.002), queue=1000)


def event(number):
    return {"group_id": "g", "event": "member_left", "time": f"2026-01-01T00:00:0{number}Z", "n": number}


def posted(*answers, count=1, limits=QUICK, secret=None):
    """The webhook after `count` events, all answered as told, and the requests it sent."""
    with respx.mock() as router:
        route = router.post(URL)
        route.side_effect = list(answers)
        hook = Webhook(URL, secret, limits=limits)
        for number in range(count):
            hook.put(event(number))
        hook.close(10)
        return hook, [call.request for call in route.calls]


def numbers(requests):
    return [json.loads(request.content)["n"] for request in requests]


def status(code, **headers):
    return httpx.Response(code, headers=headers)


def test_each_post_is_signed_over_id_time_and_body():
    """By openssl, a stranger, as docs/webhooks.md has it."""
    _, (request,) = posted(status(204), secret="a plain secret")
    head = request.headers
    told = f"{head['webhook-id']}.{head['webhook-timestamp']}.".encode() + request.content
    argv = ["openssl", "dgst", "-sha256", "-hmac", "a plain secret", "-binary"]
    digest = subprocess.run(argv, input=told, capture_output=True, check=True).stdout
    assert head["webhook-signature"] == "v1," + b64encode(digest).decode()
    assert head["content-type"] == "application/json"


class _Endless(httpx.SyncByteStream):
    read = 0

    def __iter__(self):
        while True:
            self.read += 1
            assert self.read < 100, "the answer is read on and on"
            yield bytes(1 << 16)


def test_an_accepted_post_is_delivered_however_long_its_answer():
    body = _Endless()
    hook, requests = posted(httpx.Response(200, stream=body), status(204), count=2)
    assert (hook.lost, numbers(requests), body.read) == ([], [0, 1], 0)


def test_the_example_of_standard_webhooks():
    """Its published test vector, with a secret in base64."""
    headers = signed(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_without_a_secret_there_is_no_signature():
    _, (request,) = posted(status(200))
    assert "webhook-signature" not in request.headers and "webhook-id" in request.headers


@pytest.mark.parametrize(
    "failure",
    [status(500), status(503), status(429), httpx.ConnectError("refused"), httpx.ReadTimeout("late")],
)
def test_a_failure_is_tried_again_before_the_next_event(failure):
    hook, requests = posted(failure, failure, status(200), status(200), count=2)
    assert (numbers(requests), hook.lost) == ([0, 0, 0, 1], [])
    assert len({request.headers["webhook-id"] for request in requests[:3]}) == 1


@pytest.mark.parametrize("code", [400, 401, 404, 302])
def test_a_refusal_is_final_and_the_next_event_goes_on(code):
    hook, requests = posted(status(code), status(200), count=2)
    assert numbers(requests) == [0, 1]
    (lost,) = hook.lost
    assert (lost.event["n"], lost.why) == (0, f"it answered {code}")


def test_what_no_try_delivers_is_named_in_order():
    hook, requests = posted(*[status(500)] * 8, count=2)
    assert numbers(requests) == [0] * 4 + [1] * 4
    assert [lost.event["n"] for lost in hook.lost] == [0, 1]
    assert hook.lost[0].sentence.startswith(
        "not delivered to https://hooks.example.net: g member_left 2026-01-01T00:00:00Z (msg_"
    )
    assert hook.lost[0].sentence.endswith("it answered 500 (4 tries)")


def test_a_receiver_says_when_to_come_back():
    with respx.mock() as router:
        router.post(URL).side_effect = [status(429, **{"Retry-After": "0"}), status(200)]
        # Its own backoff would outlast the test.
        hook = Webhook(URL, None, limits=PostLimits(backoff=Backoff(first_s=3600, longest_s=3600)))
        hook.put(event(0))
        while len(router.calls) < 2:
            threading.Event().wait(0.005)
        assert hook.close(10) == []


def test_the_queue_is_bounded_and_names_what_it_drops():
    held = threading.Event()

    def hold(request):
        held.wait(30)
        return status(200)

    with respx.mock() as router:
        route = router.post(URL)
        route.side_effect = hold
        hook = Webhook(URL, None, limits=PostLimits(queue=2))
        hook.put(event(0))
        while hook._trying is None:
            threading.Event().wait(0.005)
        for number in range(1, 5):
            hook.put(event(number))
        held.set()
        lost = hook.close(10)
        assert [each.event["n"] for each in lost] == [1, 2]
        assert lost[0].why == "more than 2 events waited"
        assert numbers([call.request for call in route.calls]) == [0, 3, 4]


def test_closing_names_what_there_was_no_time_for():
    with respx.mock() as router:
        route = router.post(URL)
        route.side_effect = lambda request: status(503)
        limits = PostLimits(backoff=Backoff(first_s=0.01, longest_s=0.01), tries=10_000)
        hook = Webhook(URL, None, limits=limits)
        for number in range(3):
            hook.put(event(number))
        while not route.called:
            threading.Event().wait(0.005)
        lost = hook.close(0.05)
    assert [each.event["n"] for each in lost] == [0, 1, 2]
    assert lost[2].why == "time was up before it was posted"


def test_an_address_is_printed_without_its_secrets():
    assert (
        shown("https://user:pass@hooks.example.net:8443/T000/token?key=1") == "https://hooks.example.net:8443"
    )


@pytest.mark.parametrize("url", ["hooks.example.net", "ftp://x/", "http://", "http://x:port/"])
def test_what_is_no_web_address_is_usage(on_cluster, url):
    assert on_cluster("watch", "g", "--notify", url, "--stop-after", "1ms").code == ExitCode.USAGE


@pytest.mark.parametrize("secret", ["", "whsec_not base64!"])
def test_a_secret_that_is_none_is_refused(secret):
    with pytest.raises(ConfigError, match="secret"):
        key_of(secret)


class TestWhereTheSecretComesFrom:
    def refused(self, on_cluster, *argv):
        ran = on_cluster("watch", "g", "--stop-after", "1ms", *argv)
        assert ran.code == ExitCode.USAGE
        return ran.err

    def test_a_file_that_others_may_read_is_refused(self, on_cluster, tmp_path):
        file = tmp_path / "key"
        file.write_text("abc")
        file.chmod(0o644)
        told = self.refused(on_cluster, "--notify", URL, "--notify-secret-file", str(file))
        assert f"chmod 600 {file}" in told

    def test_never_from_the_command_line(self, on_cluster):
        told = self.refused(on_cluster, "-X", "notify.secret=abc", "--notify", URL)
        assert "KGROUP_NOTIFY_SECRET" in told and "abc" not in told

    def test_a_file_for_no_posts_is_usage(self, on_cluster, tmp_path):
        assert "add --notify URL" in self.refused(on_cluster, "--notify-secret-file", str(tmp_path / "key"))

    @pytest.mark.parametrize("where", ["environment", "file", "property"])
    def test_each_of_the_places(self, on_cluster, tmp_path, monkeypatch, where):
        used = []

        class Seen(Webhook):
            def __init__(self, url, secret, **options):
                used.append(secret)
                super().__init__(url, secret, **options)

        monkeypatch.setattr("kgroup.cli.env.webhook.Webhook", Seen)
        file = tmp_path / "key"
        file.write_text("s3cret\n")
        file.chmod(0o600)
        argv = {
            "environment": (),
            "file": ("--notify-secret-file", str(file)),
            "property": ("-X", f"notify.secret.file={file}"),
        }[where]
        if where == "environment":
            monkeypatch.setenv("KGROUP_NOTIFY_SECRET", "s3cret")
        ran = on_cluster("watch", "g", "--stop-after", "1ms", "--notify", URL, *argv)
        assert (used, "s3cret" in ran.out + ran.err) == (["s3cret"], False)
