"""An emulated Messages API on loopback, with scripted replies and faults."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.emulator.emulator import Emulator, serve
    from pytest_regen.emulator.limits import Clock, RateLimits
    from pytest_regen.emulator.script import Match, Rule, Script, Step
    from pytest_regen.emulator.script_files import load_script
    from pytest_regen.emulator.values import (
        BatchStep,
        EmulatedReply,
        Fault,
        ReceivedRequest,
        ToolUse,
    )
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "BatchStep",
    "Clock",
    "EmulatedReply",
    "Emulator",
    "Fault",
    "Match",
    "RateLimits",
    "ReceivedRequest",
    "Rule",
    "Script",
    "Step",
    "ToolUse",
    "load_script",
    "serve",
]
