"""Which play a scenario is of: of the protocol that its group spoke."""

from typing import Unpack

from kgroup.scenario.playing.classic import ClassicPlay
from kgroup.scenario.playing.consumer import ConsumerPlay
from kgroup.scenario.playing.play import How, Play, Stage
from kgroup.scenario.recorded import Recorded


def play_of(recorded: Recorded, stage: Stage, **how: Unpack[How]) -> Play:
    """Return the play of a scenario; ConfigError for a part that makes no sense."""
    made = ConsumerPlay if recorded.head.protocol == "consumer" else ClassicPlay
    return made(recorded, stage, **how)
