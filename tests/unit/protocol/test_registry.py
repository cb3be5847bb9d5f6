"""The registry: lazy and complete."""

import pkgutil
import subprocess
import sys

import pytest

from kgroup.errors import DecodeError
from kgroup.protocol import messages, registry
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@pytest.mark.parametrize("key", registry.KAFKA_APIS + registry.PRIVATE_APIS)
def test_request_and_response_go_together(key: int) -> None:
    request, response = registry.request_class(key), registry.response_class(key)
    assert request.API == response.API == key
    assert (request.VERSIONS, request.FLEXIBLE) == (response.VERSIONS, response.FLEXIBLE)
    assert {request.__name__, response.__name__} == {
        registry.name_of(key) + s for s in ("Request", "Response")
    }


def test_every_message_module_is_registered() -> None:
    found = {m.name for m in pkgutil.iter_modules(messages.__path__)}
    keys = registry.KAFKA_APIS + registry.PRIVATE_APIS
    of_one_version = {registry.response_class_at(2, 0).__module__.rpartition(".")[2]}
    assert found - of_one_version == {registry.request_class(k).__module__.rpartition(".")[2] for k in keys}


def test_the_answer_to_a_request() -> None:
    request = HeartbeatRequest(group_id="g", generation_id=0, member_id="m")
    assert registry.response_class_of(request) is HeartbeatResponse


def test_unknown_apis() -> None:
    assert not registry.known(4711)
    assert registry.name_of(4711) == "API_4711"
    with pytest.raises(DecodeError, match="no API has key 4711"):
        registry.request_class(4711)


def test_importing_the_registry_imports_no_message() -> None:
    code = "import sys, kgroup.protocol.headers; print([m for m in sys.modules if 'protocol.messages.' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
