"""An emulated Messages API on loopback, with scripted replies and faults."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.emulator.emulator import Emulator as Emulator
    from pytest_regen.emulator.emulator import serve as serve
    from pytest_regen.emulator.limits import Clock as Clock
    from pytest_regen.emulator.limits import RateLimits as RateLimits
    from pytest_regen.emulator.script import Match as Match
    from pytest_regen.emulator.script import Rule as Rule
    from pytest_regen.emulator.script import Script as Script
    from pytest_regen.emulator.script import Step as Step
    from pytest_regen.emulator.script_files import load_script as load_script
    from pytest_regen.emulator.values import BatchStep as BatchStep
    from pytest_regen.emulator.values import EmulatedReply as EmulatedReply
    from pytest_regen.emulator.values import Fault as Fault
    from pytest_regen.emulator.values import ReceivedRequest as ReceivedRequest
    from pytest_regen.emulator.values import ToolUse as ToolUse
else:
    __getattr__, __dir__ = lazy(__name__)
