"""Chooses the play of a scenario by its group's protocol."""

from typing import Unpack

from kgroup.domain import CONSUMER
from kgroup.scenario.playing.classic import ClassicPlay
from kgroup.scenario.playing.consumer import ConsumerPlay
from kgroup.scenario.playing.play import How, Play, Stage
from kgroup.scenario.recorded import Recorded


def play_of(recorded: Recorded, stage: Stage, **how: Unpack[How]) -> Play:
    """Return the play of a scenario; ConfigError for an invalid part."""
    made = ConsumerPlay if recorded.head.protocol == CONSUMER else ClassicPlay
    return made(recorded, stage, **how)
