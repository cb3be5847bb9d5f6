"""`config set`: brokers accept a change before they return it."""

import pytest

from kgroup.protocol.messages import describe_configs as dc
from kgroup.protocol.messages import incremental_alter_configs as ac
from tests.walk.world import World, healthy

NAME = "consumer.session.timeout.ms"
GROUP_CONFIG, DEFAULT_CONFIG = 8, 5


def applying_after(looks: int, told: str = "60000") -> World:
    """Brokers that return a change only after so many further looks, in the words `told`."""
    world = healthy()
    left = [-1]

    def alter(node: int, request: ac.IncrementalAlterConfigsRequest) -> ac.IncrementalAlterConfigsResponse:
        if not request.validate_only:
            left[0] = looks
        answers = tuple(
            ac.AlterConfigsResourceResponse(resource_name=r.resource_name) for r in request.resources
        )
        return ac.IncrementalAlterConfigsResponse(responses=answers)

    def describe(node: int, request: dc.DescribeConfigsRequest) -> dc.DescribeConfigsResponse:
        own = left[0] == 0
        left[0] -= left[0] > 0
        setting = dc.DescribeConfigsResourceResult(
            name=NAME, value=told if own else "45000", config_source=GROUP_CONFIG if own else DEFAULT_CONFIG
        )
        return dc.DescribeConfigsResponse(results=(dc.DescribeConfigsResult(configs=(setting,)),))

    world.fake.on(ac.IncrementalAlterConfigsRequest, alter)
    world.fake.on(dc.DescribeConfigsRequest, describe)
    return world


@pytest.mark.parametrize(("looks", "wanted"), [(0, "60000"), (3, "60000"), (3, "060000")])
def test_it_waits_until_what_was_set_is_seen(ask, looks, wanted):
    told = ask(applying_after(looks), "config", "set", "g", f"{NAME}={wanted}", "--execute", "--yes")
    assert told.code == 0, told.err
    assert [(s["before"], s["after"], s["origin"]) for s in told.data["settings"]] == [
        ("45000", "60000", "group")
    ]


def test_what_is_not_seen_in_time_is_said(ask):
    world = applying_after(10_000)
    told = ask(world, "config", "set", "g", f"{NAME}=60000", "--execute", "--yes")
    assert (told.code, [e["code"] for e in told.errors]) == (5, ["NOT_SEEN"])
    assert "accepted and is not seen yet" in told.err
    assert told.data["journal_id"] == "j-0001"
    assert world.fake.time.now < 10
