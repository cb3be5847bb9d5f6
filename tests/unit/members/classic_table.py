"""A classic member whose coordinator and host are the test, request by request."""

from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
from kgroup.domain import Topic, TopicPartition
from kgroup.errors import ErrorCode as E
from kgroup.members.classic import ClassicMember, Phase
from kgroup.members.effects import Send
from kgroup.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kgroup.protocol.messages.join_group import JoinGroupResponse
from kgroup.protocol.messages.sync_group import SyncGroupResponse
from kgroup.protocol.subscription import Assignment

TOPICS = {"t": Topic("t", b"t" * 16, 4)}


def parts(*numbers):
    return tuple(TopicPartition("t", n) for n in numbers)


class Table:
    """A member, and what it asked for last; stands in for host and coordinator."""

    def __init__(self, assignor=None, **options):
        self.member = ClassicMember("g", ["t"], [assignor or ClientRangeAssignor()], **options)
        self.now = 0
        self.sent = None
        self.seen = []
        self.take(self.member.start(0))

    def take(self, effects):
        self.seen = []
        for effect in effects:
            if isinstance(effect, Send):
                self.sent, self.min_version = effect.request, effect.min_version
            else:
                self.seen.append(effect)

    def answer(self, response, request=None):
        self.take(self.member.receive(request or self.sent, response, self.now))
        return self.seen

    def follow(self, generation, *numbers, protocol=None):
        """Join as a follower and be given these partitions."""
        name = protocol or next(iter(self.member._assignors))
        self.answer(
            JoinGroupResponse(generation_id=generation, protocol_name=name, leader="other", member_id="m")
        )
        assert self.member.phase is Phase.SYNCING
        return self.answer(SyncGroupResponse(assignment=Assignment(parts(*numbers)).encode()))

    def beat(self, code=E.NONE):
        self.now += 3000
        self.take(self.member.wake(self.now))
        assert isinstance(self.sent, HeartbeatRequest)
        return self.answer(HeartbeatResponse(error_code=code))
