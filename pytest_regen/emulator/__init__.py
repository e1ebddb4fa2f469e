"""An emulated Messages API on loopback, with scripted replies and faults."""

from pytest_regen.emulator.clock import Clock
from pytest_regen.emulator.emulator import Emulator
from pytest_regen.emulator.limits import RateLimits
from pytest_regen.emulator.script import Match, Rule, Script, Step
from pytest_regen.emulator.script_reading import load_script
from pytest_regen.emulator.serving import serve
from pytest_regen.emulator.values import EmulatedReply, Fault, ReceivedRequest, ToolUse

__all__ = [
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
