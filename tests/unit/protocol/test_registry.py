"""The registry: lazy, complete, and with the versions a Kafka 4.3.1 broker serves."""

import pkgutil
import subprocess
import sys

import pytest

from kgroup.errors import DecodeError
from kgroup.protocol import messages, registry
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

SERVED = {  # ApiKeys of Kafka 4.3.1, stable versions
    0: (3, 13),
    1: (4, 18),
    2: (1, 11),
    3: (0, 13),
    8: (2, 10),
    9: (1, 10),
    10: (0, 6),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    15: (0, 6),
    16: (0, 5),
    17: (0, 1),
    18: (0, 4),
    19: (2, 7),
    20: (1, 6),
    21: (0, 2),
    22: (0, 5),
    23: (2, 4),
    24: (0, 5),
    25: (0, 4),
    26: (0, 5),
    27: (1, 2),
    28: (0, 5),
    29: (1, 3),
    30: (1, 3),
    31: (1, 3),
    32: (1, 4),
    33: (0, 2),
    35: (1, 5),
    36: (0, 2),
    37: (0, 3),
    42: (0, 2),
    43: (0, 2),
    44: (0, 1),
    45: (0, 1),
    46: (0, 0),
    47: (0, 0),
    48: (0, 1),
    50: (0, 0),
    51: (0, 0),
    57: (0, 2),
    60: (0, 2),
    61: (0, 0),
    65: (0, 0),
    66: (0, 2),
    68: (0, 1),
    69: (0, 1),
    71: (0, 0),
    72: (0, 0),
    74: (0, 1),
    75: (0, 0),
    76: (1, 1),
    77: (1, 1),
    78: (1, 2),
    79: (1, 2),
    83: (0, 0),
    84: (0, 0),
    85: (0, 1),
    86: (0, 0),
    87: (0, 1),
    88: (0, 0),
    89: (0, 0),
    90: (0, 1),
    91: (0, 0),
    92: (0, 0),
    10001: (0, 0),
    10002: (0, 0),
}


def test_served_versions_are_those_of_kafka() -> None:
    keys = registry.KAFKA_APIS + registry.PRIVATE_APIS
    assert {k: (registry.served_versions(k)[0], registry.served_versions(k)[-1]) for k in keys} == SERVED


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
