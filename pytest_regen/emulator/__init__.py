"""An emulated Messages API on loopback: ``Emulator``."""

from pytest_regen.emulator.clock import Clock
from pytest_regen.emulator.emulator import Emulator
from pytest_regen.emulator.limits import RateLimits
from pytest_regen.emulator.values import EmulatedReply, Fault, ReceivedRequest, ToolUse

__all__ = [
    "Clock",
    "EmulatedReply",
    "Emulator",
    "Fault",
    "RateLimits",
    "ReceivedRequest",
    "ToolUse",
]
