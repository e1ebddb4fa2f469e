"""The command line: ``pytest-regen``, also ``python -m pytest_regen``.

Exit codes: 0 fine; 1 validation errors remain; 2 wrong usage, unreadable or unwritable files, an
edit or staleness that stops a write; 3 no reply from the model (design, section 6).
"""

import os
import sys

import typer

from pytest_regen.cli.emulating import emulator
from pytest_regen.cli.generating import generate
from pytest_regen.cli.output import describe_failure, emit_json, say
from pytest_regen.cli.past import adopt, history, restore
from pytest_regen.cli.regenerating import regenerate
from pytest_regen.cli.validating import validate
from pytest_regen.errors import RegenError

__all__ = ["app", "main"]

app = typer.Typer(
    name="pytest-regen",
    help="Gates, heals and replays what language models write.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

for command in (generate, regenerate, validate, history, restore, adopt, emulator):
    app.command()(command)


def main() -> None:
    """Run a command and end the process with its exit code."""
    try:
        app(prog_name="pytest-regen")
    except RegenError as error:
        if "--json" in sys.argv:
            emit_json(describe_failure(error))
        say(f"error: {error}")
        raise SystemExit(error.exit_code) from None
    except KeyboardInterrupt:
        say("stopped; what was finished is stored, the same command goes on from there")
        raise SystemExit(130) from None
    except BrokenPipeError:
        # Whoever read stdout has left; nothing more can be said there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
