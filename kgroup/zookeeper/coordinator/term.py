"""An active coordinator's parts, from election to resignation: registries and all that works on them."""

from collections.abc import Callable, Sequence

from kgroup.domain import count_of
from kgroup.zookeeper.coordinator import paths
from kgroup.zookeeper.coordinator.core import UNCERTAIN, Core, reason, uncertain
from kgroup.zookeeper.coordinator.directory import Directory, Found, Partitions
from kgroup.zookeeper.coordinator.rebalancers import Owners, Rebalancers, consumer_of, read_owners
from kgroup.zookeeper.coordinator.registries import (
    Group,
    Job,
    RegisteredConsumer,
    Registries,
    Stage,
    Subscription,
    Watcher,
    parse,
)
from kgroup.zookeeper.events import Level
from kgroup.zookeeper.store.names import is_name
from kgroup.zookeeper.store.operations import Children, Exists, Failure, Result
from kgroup.zookeeper.wire import messages


class Term(Registries):
    """One broker's time as coordinator; `end` is final."""

    def __init__(self, core: Core, directory: Directory, epoch: int, fenced: Callable[[], None]) -> None:
        super().__init__(core, directory, epoch, fenced)
        self.interests = Interests(self)
        self.pings = Pings(self)
        self.rebalancers = Rebalancers(self)
        self.recovery = Recovery(self)
        self.registration = Registration(self)
        self.answers = Answers(self)

    def start(self, ready: Callable[[], None]) -> None:
        """Start in the draft's order, then call `ready` (era 3.4).

        The session's end always arrives as an event and the rebalancers exist: only reading takes time.
        """

        def read() -> None:
            self.committer.start()
            ready()

        self.interests.start(lambda: self.directory.once_known(lambda: None if self.over else read()))

    def end(self) -> None:
        """Close every consumer's connection and drop all state, writing nothing (era 3.5)."""
        self.over = True
        for conn in self.members:
            self.core.close(conn)
        self.members.clear()
        self.groups.clear()

    def fail(self, member: RegisteredConsumer, why: str, *, closed: bool = False) -> None:
        """Remove a member, in the draft's order (era 5.5)."""
        group = self.groups[member.registration.group_id]
        self.core.log(Level.INFO, f"consumer {member.consumer_id} of group {group.group_id}: {why}")
        self.pings.stop(member)
        if not closed:
            self.core.close(member.conn)
        del self.members[member.conn]
        del group.members[member.consumer_id]
        member.gone = True
        self.purgatory.drop(member)
        if member.holds:
            group.departed[member.consumer_id] = member
        if group.run is not None:
            group.run.member_failed()
        if group.members:
            self.rebalancers.add(group)
        else:
            self.recovery.idle(group)


Answer = messages.PingResponse | messages.StopFetcherResponse | messages.StartFetcherResponse
_KINDS: dict[type, messages.RequestKey] = {
    messages.PingResponse: messages.RequestKey.PING,
    messages.StopFetcherResponse: messages.RequestKey.STOP_FETCHER,
    messages.StartFetcherResponse: messages.RequestKey.START_FETCHER,
}


class Answers:
    """Handles answers; `ignored` counts offsets of partitions their sender does not own."""

    def __init__(self, term: Term) -> None:
        self._term = term
        self.ignored = 0

    def contradiction(
        self, member: RegisteredConsumer, message: Answer | messages.CommitOffsetRequest
    ) -> str | None:
        """Return why no consumer with this registration can send that, or None (era 2.6, 5.3)."""
        if message.consumer_id != member.consumer_id:
            return f"it says it is {message.consumer_id}"
        if isinstance(message, messages.CommitOffsetRequest):
            return None if self._term.core.config.commit else "commits are not allowed here"
        closing = (
            isinstance(message, messages.PingResponse) and message.error == messages.ErrorMapping.CLOSING
        )
        if message.error != messages.ErrorMapping.NONE and not closing:
            return f"it answers error {message.error}"
        if isinstance(message, messages.StartFetcherResponse):
            return None
        if (message.offsets is None) is member.registration.auto_commit:
            return "its offsets contradict its auto-commit"
        return None

    def take(self, member: RegisteredConsumer, message: Answer, correlation: int) -> None:
        """Handle an answer; without a watcher or after its expiry only its offsets count (era 6.4)."""
        header = self._term.core.config.header
        watcher = self._term.purgatory.answer(member, _KINDS[type(message)], correlation if header else None)
        if watcher is None:
            return
        in_time = not watcher.settled
        if in_time:
            self._term.purgatory.satisfy(watcher)
        if isinstance(message, messages.StartFetcherResponse):
            self._started(watcher, in_time)
            return
        # An answer to a request before its Start reports the assignment before it.
        self._take_offsets(member, message.offsets or (), watcher.serial > member.start_serial)
        if isinstance(message, messages.StopFetcherResponse):
            self._stopped(watcher, in_time)
            return
        if in_time:
            self._term.pings.answered(watcher)
        if message.error == messages.ErrorMapping.CLOSING:
            # It has stopped its fetchers, so others need not wait for its lease (era 9.9).
            self._term.groups[member.registration.group_id].release(member)
            self._term.fail(member, "leaves")

    def commit(
        self, member: RegisteredConsumer, request: messages.CommitOffsetRequest, correlation: int
    ) -> None:
        """Write a consumer's offsets at once and answer when they are written (era 10.2)."""
        group = self._term.groups[member.registration.group_id]
        core = self._term.core
        response = messages.CommitOffsetResponse(messages.ErrorMapping.NONE, member.consumer_id)
        # Before its Start is answered, a commit may be of the previous assignment.
        taken = self._take_offsets(member, request.offsets, member.start_answered)
        written_puts: dict[str, bytes] = {}
        if len(taken) < len(request.offsets):
            response = messages.CommitOffsetResponse(messages.ErrorMapping.BAD_REQUEST, member.consumer_id)

        def written(done: bool) -> None:
            if done:
                self._term.committer.written(group, written_puts)
            answer = (
                response
                if done
                else messages.CommitOffsetResponse(messages.ErrorMapping.UNKNOWN, member.consumer_id)
            )
            if not member.gone:
                core.send(member.conn, answer, correlation)

        def puts() -> dict[str, bytes]:
            written_puts.update(
                (paths.offset(group.group_id, part), str(group.offsets[part]).encode()) for part in taken
            )
            return written_puts

        self._term.writes.add(group, Job(puts, written))

    def _stopped(self, watcher: Watcher, in_time: bool) -> None:
        member = watcher.member
        group = self._term.groups[member.registration.group_id]
        if watcher.serial > member.start_serial:
            group.release(member)
        if in_time and group.run is not None:
            group.run.answered(watcher)

    def _started(self, watcher: Watcher, in_time: bool) -> None:
        member = watcher.member
        if watcher.serial != member.start_serial:
            return
        member.start_answered = True
        run = self._term.groups[member.registration.group_id].run
        if in_time and run is not None:
            member.started = True
            run.answered(watcher)

    def _take_offsets(
        self, member: RegisteredConsumer, offsets: messages.Offsets, current: bool
    ) -> list[messages.Partition]:
        """Take offsets of partitions the member owns, if they are of its current assignment (era 6.5)."""
        group = self._term.groups[member.registration.group_id]
        taken = []
        for topic, name, offset in offsets:
            partition = messages.Partition(topic, name)
            if not current or partition not in member.holds or offset < 0:
                self.ignored += 1
                continue
            taken.append(partition)
            if group.offsets.get(partition) != offset:
                group.offsets[partition] = offset
                group.changed[partition] = None
        return taken


RESET_WORDS = ("smallest", "largest")


class Registration:
    """Answers registrations; the consumer, not the broker, closes a rejected connection (era 4.1)."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def take(self, conn: int, request: messages.RegisterConsumerRequest, correlation: int) -> bool:
        """Register a consumer; return whether the connection is a member's now."""
        core = self._term.core
        error = messages.ErrorMapping.BAD_REQUEST if conn in self._term.members else self._malformed(request)
        subscription = parse(request.topic_count)
        if error is None and subscription is None:
            error = messages.ErrorMapping.BAD_SUBSCRIPTION
        error = error or self._refused(request)
        if error is not None:
            core.send(conn, messages.RegisterConsumerResponse(error), correlation)
            return False
        assert subscription is not None
        core.send(conn, messages.RegisterConsumerResponse(messages.ErrorMapping.NONE), correlation)
        self._accept(conn, request, subscription)
        return True

    def _malformed(self, request: messages.RegisterConsumerRequest) -> messages.ErrorMapping | None:
        names = is_name(request.group_id) and is_name(request.consumer_id)
        reserved = request.group_id == paths.COORDINATOR_GROUP
        if names and not reserved and request.auto_offset_reset in RESET_WORDS:
            return None
        return messages.ErrorMapping.BAD_REQUEST

    def _refused(self, request: messages.RegisterConsumerRequest) -> messages.ErrorMapping | None:
        core = self._term.core
        group = self._term.groups.get(request.group_id)
        present = group.members.get(request.consumer_id) if group is not None else None
        if present is not None and core.now_ms < present.lease_end_ms:
            return messages.ErrorMapping.DUPLICATE_CONSUMER_ID
        # Strictly larger than the least, as in the draft; the upper bound is ours.
        if not core.config.min_session_ms < request.session_timeout_ms <= core.config.max_session_ms:
            return messages.ErrorMapping.SESSION_TIMEOUT_OUT_OF_RANGE
        return None

    def _accept(
        self, conn: int, request: messages.RegisterConsumerRequest, subscription: Subscription
    ) -> None:
        term, now_ms = self._term, self._term.core.now_ms
        group = term.groups.get(request.group_id)
        new = group is None
        if group is None:
            group = term.groups[request.group_id] = Group(request.group_id)
        self._replace(group, request.consumer_id)
        member = RegisteredConsumer(request, subscription, conn, now_ms, now_ms)
        term.members[conn] = member
        term.pings.start(member)
        group.members[request.consumer_id] = member
        term.interests.add(group, member)
        if group.run is not None:
            group.run.joined()
        if new:
            term.recovery.load(group)
        term.recovery.registered(group, member)

    def _replace(self, group: Group, consumer_id: str) -> None:
        """Release what the consumer held: it stopped its fetchers before it registered again (era 4.3)."""
        before = group.members.get(consumer_id)
        if before is not None:
            group.release(before)
            self._term.fail(before, "has registered on another connection")
        departed = group.departed.get(consumer_id)
        if departed is not None:
            group.release(departed)


class Interests:
    """The draft's consumerGroupsPerTopic and groupsWithWildcardTopics, and the watches on topics.

    When a watch fires, everything it covered is read again under a new watch and compared with the last read:
    no change is lost in between, and none is acted upon twice (era 6.3).
    """

    def __init__(self, term: Term) -> None:
        self._term = term
        self.groups_of: dict[str, dict[str, Group]] = {}
        self.wildcards: dict[str, Group] = {}
        self._started: Callable[[], None] | None = None
        self._listings = 0

    @property
    def starting(self) -> bool:
        """Whether the topics are being read for the first time."""
        return self._started is not None

    def start(self, then: Callable[[], None]) -> None:
        """Read all topics, with empty sets, under watches."""
        self._started = then
        self._list()

    def fired(self, path: str) -> None:
        """Read again what a watch saw or lost."""
        if path == paths.TOPICS:
            self._list()
        elif path.startswith(paths.TOPICS + "/"):
            name = path[len(paths.TOPICS) + 1 :].partition("/")[0]
            if name in self._term.topics:
                self._read([name])

    def add(self, group: Group, member: RegisteredConsumer) -> None:
        """Note the group's interest in what the member reads."""
        for topic in member.subscription.topics:
            self._interest(group, topic)
        if member.subscription.pattern is not None:
            self.wildcards[group.group_id] = group
            for topic in self._term.topics:
                if member.subscription.streams_of(topic):
                    self._interest(group, topic)

    def drop(self, group: Group) -> None:
        """Drop the interests of a group that has ended."""
        self.wildcards.pop(group.group_id, None)
        for topic in group.topics:
            groups = self.groups_of.get(topic, {})
            groups.pop(group.group_id, None)
            if not groups:
                self.groups_of.pop(topic, None)
        group.topics.clear()

    def _interest(self, group: Group, topic: str) -> None:
        self.groups_of.setdefault(topic, {})[group.group_id] = group
        group.topics[topic] = None

    def _list(self) -> None:
        self._listings += 1
        listing = self._listings
        self._term.ask((Children(paths.TOPICS),), lambda results: self._listed(listing, results), watch=True)

    def _listed(self, listing: int, results: Sequence[Result]) -> None:
        (names,) = results
        if listing != self._listings:
            return
        if names is Failure.NO_NODE:
            # No broker has been here yet: there are no topics until the node is created.
            self._term.ask((Exists(paths.TOPICS),), self._found_after_all, watch=True)
            names = ()
        if not isinstance(names, tuple):
            if not uncertain(results):
                self._term.core.log(Level.ERROR, f"{paths.TOPICS} cannot be read: {reason(names)}")
            self._term.when_connected(lambda: self._list() if listing == self._listings else None)
            return
        for gone in [name for name in self._term.topics if name not in set(names)]:
            self._gone(gone)
        self._read([name for name in names if name not in self._term.topics])

    def _found_after_all(self, results: Sequence[Result]) -> None:
        if not isinstance(results[0], Failure):
            self._list()

    def _read(self, names: list[str]) -> None:
        self._term.reader.read(names, lambda topics: self._topics_read(names, topics), watch=True)

    def _topics_read(self, names: list[str], topics: Found) -> None:
        if any(partitions in UNCERTAIN for partitions in topics.values()):
            # New ones are not known yet, so listing again would find them; known ones have to be read.
            self._term.when_connected(lambda: self._read(names))
            return
        for name, partitions in topics.items():
            self._learnt(name, partitions)
        if self._started is not None:
            started, self._started = self._started, None
            started()

    def _learnt(self, name: str, partitions: Partitions | Failure) -> None:
        if partitions is Failure.NO_NODE:
            if name in self._term.topics:
                self._gone(name)
            return
        if isinstance(partitions, Failure):
            self._term.core.log(Level.ERROR, f"topic {name} cannot be read: {partitions.value}")
        new = name not in self._term.topics
        known = None if isinstance(partitions, Failure) else partitions
        if not new and self._term.topics[name] == known:
            return
        self._term.topics[name] = known
        if new:
            for group in self.wildcards.values():
                members = group.members.values()
                if any(
                    member.subscription.pattern and member.subscription.streams_of(name) for member in members
                ):
                    self._interest(group, name)
        self._trigger(name)

    def _gone(self, name: str) -> None:
        """Make the next attempt of each group drop the topic's owners (era 6.6)."""
        del self._term.topics[name]
        self._trigger(name)

    def _trigger(self, name: str) -> None:
        for group in self.groups_of.get(name, {}).values():
            self._term.rebalancers.add(group)


class Recovery:
    """Finds out who owned a group's partitions before, and waits while they may deliver."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def load(self, group: Group) -> None:
        """Read the former owners of a group that is new here (era 8.1)."""
        read_owners(self._term, group, lambda owners: self._loaded(group, owners))

    def registered(self, group: Group, member: RegisteredConsumer) -> None:
        """Note a member that has stopped its fetchers (era 8.2, 9.2); rebalance the group if it is time."""
        self._term.timers.cancel(group.idle_timer)
        group.idle_timer = None
        group.awaited.discard(member.consumer_id)
        if group.stage is Stage.RECOVERING and group.all_awaited and not group.awaited:
            self._normal(group)
        else:
            self._term.rebalancers.add(group)

    def idle(self, group: Group) -> None:
        """Arm the removal of an empty group; a member that joins before keeps it (era 8.5)."""
        self._arm_idle(group, self._term.core.now_ms + self._term.core.config.empty_group_ms)

    def _arm_idle(self, group: Group, due_ms: int) -> None:
        self._term.timers.cancel(group.idle_timer)
        group.idle_timer = self._term.timers.arm(due_ms, lambda: self._forget(group))

    def _forget(self, group: Group) -> None:
        group.idle_timer = None
        now_ms = self._term.core.now_ms
        lease_ends = [member.lease_end_ms for member in group.departed.values()]
        if group.jobs or group.run is not None or group.rebalance_initiated or group.stage is Stage.LOADING:
            self._arm_idle(group, now_ms + self._term.core.config.empty_group_ms)
        elif group.changed:
            # Reported offsets are kept until they are written.
            self._term.committer.flush(group, lambda _: None)
            self._arm_idle(group, now_ms + self._term.core.config.commit_interval_ms)
        elif any(end > now_ms for end in lease_ends):
            self._arm_idle(group, max(lease_ends))
        else:
            group.dropped = True
            self._term.interests.drop(group)
            del self._term.groups[group.group_id]

    def _loaded(self, group: Group, owners: Owners | Failure) -> None:
        if isinstance(owners, Failure):
            if not uncertain((owners,)):
                text = f"owners of group {group.group_id} cannot be read: {owners.value}"
                self._term.core.log(Level.ERROR, text)
            self._term.when_connected(lambda: None if group.dropped else self.load(group))
            return
        path = paths.group(group.group_id)
        if path not in group.there:
            self._term.writes.add(group, Job(lambda: {path: b""}, lambda _: None))
        group.awaited = {consumer_of(thread) for thread in owners.threads.values()} - {""}
        group.all_awaited = not owners.starting
        known = bool(group.awaited) or owners.starting
        group.awaited -= group.members.keys()
        config, core = self._term.core.config, self._term.core
        longest = owners.session_timeout_ms or config.max_session_ms
        until = self._term.elected_at_ms + longest + self.old_lease_ms()
        if not known or until <= core.now_ms or (group.all_awaited and not group.awaited):
            self._normal(group)
            return
        group.stage = Stage.RECOVERING
        waiting = ", ".join(sorted(group.awaited)[:3])
        core.log(
            Level.INFO,
            f"group {group.group_id} waits for {count_of(len(group.awaited), 'consumer')}: {waiting}",
        )

        def waited() -> None:
            if group.stage is Stage.RECOVERING and not group.dropped:
                self._normal(group)

        self._term.timers.arm(until, waited)

    def all_known_ms(self) -> int:
        """Return when every earlier reader has registered or stopped delivering, whatever its session."""
        longest = self._term.core.config.max_session_ms
        return self._term.elected_at_ms + longest + self.old_lease_ms()

    def old_lease_ms(self) -> int:
        """Return how long the old coordinator may have taken answers after this one was elected.

        It took none if its session expired, for its lease ended before. But an expired session looks like a
        node deleted by hand; then it continues until its lease ends, 2Z/3 after its last probe.
        """
        return 2 * self._term.core.negotiated_ms // 3

    def _normal(self, group: Group) -> None:
        group.stage = Stage.NORMAL
        group.awaited.clear()
        if group.members:
            self._term.rebalancers.add(group)


class Pings:
    """Pings every member each third of its session, counted from its registration to avoid drift."""

    def __init__(self, term: Term) -> None:
        self._term = term

    def stop(self, member: RegisteredConsumer) -> None:
        """Stop pinging this member."""
        self._term.timers.cancel(member.ping_timer)
        member.ping_timer = None

    def answered(self, watcher: Watcher) -> None:
        """Extend the member's lease by one session and reset its misses (era 5.3)."""
        watcher.member.failed = 0
        watcher.member.answered_at_ms = self._term.core.now_ms

    def start(self, member: RegisteredConsumer) -> None:
        """Send the first ping at once."""
        core = self._term.core
        if not self._term.purgatory.pending(member, messages.RequestKey.PING):
            watcher = self._term.purgatory.watch(member, messages.RequestKey.PING, core.now_ms, self._expired)
            core.send(
                member.conn, messages.PingRequest(member.consumer_id, member.failed), watcher.correlation
            )
        member.pings += 1
        due = member.registered_at_ms + member.pings * member.session_ms // 3
        member.ping_timer = self._term.timers.arm(due, lambda: self.start(member))

    def _expired(self, watcher: Watcher) -> None:
        member = watcher.member
        member.failed += 1
        if member.failed > self._term.core.config.max_failed_pings:
            self._term.fail(member, f"no answer to {member.failed} pings")
