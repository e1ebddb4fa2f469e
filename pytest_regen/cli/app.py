"""The command line: ``pytest-regen``, also ``python -m pytest_regen``.

Exit codes: 0 fine; 1 validation errors remain; 2 wrong usage, unreadable or unwritable files, an
edit or staleness that stops a write; 3 no reply from the model.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from pytest_regen.cli import output
from pytest_regen.cli.output import AsJson
from pytest_regen.errors import RegenError, UsageError

COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "init": ("init", "Set a project up: settings, and the first types or functions."),
    "generate": ("generate", "Generate or update types of an API, or units of a file."),
    "regenerate": ("regenerate", "Regenerate types of a store, or units of a file."),
    "validate": ("keep", "Validate stores and units; no model."),
    "diff": ("diff", "Show what changed between two versions, and whether it breaks."),
    "status": ("status", "Show each unit or type: its state, who wrote it, and when."),
    "history": ("keep", "List outputs that were replaced or rejected; newest last."),
    "restore": ("keep", "Put an output from the history back."),
    "review": ("review", "Accept or reject candidates that wait for review."),
    "adopt": ("keep", "Record what was edited by hand, or existed before, as it stands."),
    "rebuild": ("keep", "Put back what is recorded; drops edits, asks no model."),
    "forget": ("keep", "Drop units that nothing asks for any more."),
    "cassettes": ("cassettes", "Check, show and convert recordings."),
    "emulator": ("app", "Run a local fake of the Messages API, until stopped."),
}
"""Command to the module that holds it and what ``--help`` says: a command pays only for itself."""

_SETTINGS: Final[Mapping[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}

_METAVARS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("--attempts", "--fields-per-page", "--jobs", "--page", "--port"), "N"),
    **dict.fromkeys(("--language", "--namespace", "--profile", "--type", "--unit"), "NAME"),
    "--budget": "TOKENS",
    "--cassette": "FILE",
    "--correction": "TEXT",
    "--engine": "live|batch",
    "--model": "MODEL",
    "--operation": "OPERATION",
    "--out": "DIR",
    "--provider": "NAME",
    "--replies": "FILE",
    "--status": "CODE",
    "--tag": "TAG",
}
"""What ``--help`` shows for the value of an option, instead of a type of Python."""

_STOPPED: Final = 130

# Whatever typer raises about a command line; it has the class from click and does not export it.
_CommandLineError: Any = typer.BadParameter.__mro__[2]


class _LateGroup(TyperGroup):
    """Imports a command when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        function = getattr(import_module(f"pytest_regen.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        if isinstance(function, typer.Typer):
            return typer.main.get_group(function)
        alone = typer.Typer(**_SETTINGS)
        alone.command(cmd_name)(function)
        command = typer.main.get_command(alone)
        for param in command.params:
            # Because typer would name the type of Python, which says less than what is to be typed.
            metavars = (_METAVARS[option] for option in param.opts if option in _METAVARS)
            param.metavar = param.metavar or next(metavars, None)
        return command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


app = typer.Typer(
    name="pytest-regen",
    cls=_LateGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **_SETTINGS,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        from pytest_regen import __version__

        print(f"pytest-regen {__version__}")  # what was asked for
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Test LLM-generated code with pytest, and regenerate only the part that fails."""
    del version  # Its callback has ended the command.


def emulator(
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    replies: Annotated[Path | None, typer.Option(help="YAML script of replies.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a local fake of the Messages API, until stopped. Everything it says is labelled."""
    from pytest_regen.emulator import serve

    def tell(base_url: str) -> None:
        if as_json:
            output.emit_json({"base_url": base_url})
        output.say(f"emulator of the Messages API on {base_url}; stop it with Ctrl-C")
        output.next_step(f"export ANTHROPIC_BASE_URL={base_url} ANTHROPIC_API_KEY=any-key")

    serve(port, replies, ready=tell, answered=output.say)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run a command and end the process with its exit code.

    Args:
        args: the command line without the program's name; by default this process's own.
    """
    words = list(sys.argv[1:] if args is None else args)
    code: object = _STOPPED  # What typer makes of Ctrl-C as well.
    try:
        # By the words, because the options are not known yet, or never, where they are wrong.
        with output.stdout_for_json() if "--json" in words else nullcontext():
            output.begin(words)
            code = app(words, prog_name="pytest-regen", standalone_mode=False)
        # Here, because a reader of stdout that has left is noticed only when it is flushed.
        sys.stdout.flush()
        if not code and "--json" not in words and not output.said_next():
            following = "pytest-regen review" if "--pending" in words else "pytest"
            if "--dry-run" in words:
                following = output.command_again()
            output.next_step(following)
    except RegenError as error:
        code = _tell_error(error, words)
    except _CommandLineError as error:
        context = getattr(error, "ctx", None)
        # By its name, because typer does not export the class.
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            raise SystemExit(2) from None
        hint = f"{context.command_path if context else 'pytest-regen'} --help"
        what = error.format_message().rstrip(".")
        code = _tell_error(UsageError(what, hint=hint), words)
    except (KeyboardInterrupt, typer.Abort):
        pass
    except BrokenPipeError:
        # The reader of stdout has left, and Python would complain when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        hint = "make room, or allow it, then the same command again"
        code = _tell_error(UsageError(what, hint=hint), words)
    if code == _STOPPED:
        output.fail("stopped", hint="the same command again; what was finished is stored")
    raise SystemExit(code if isinstance(code, int) else 0)


def _tell_error(error: RegenError, words: Sequence[str]) -> int:
    """Say what is wrong, as JSON too where that was asked for; return the exit code."""
    # Before the error, because what to do belongs at the end, where people look first.
    for line in (getattr(error, "trace", "") or "").splitlines():
        output.say(f"  {line}")
    if "--json" in words:
        output.emit_json(output.describe_failure(error))
    output.fail(error.what, why=error.why, hint=error.hint)
    return error.exit_code
