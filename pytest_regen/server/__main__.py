"""`python -m pytest_regen.server`: serves the subject line agent on this machine."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from pytest_regen.context.agent import ClarifyingAgent
from pytest_regen.context.sealing import Sealer, SealPolicy
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.turns.choosing import load_provider, provider_from_environment

__all__ = ["main"]

KEY_VARIABLE = "PYTEST_REGEN_SEAL_KEY"
_LOOPBACK_ADDRESSES = ("127.0.0.1", "localhost", "::1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; return the exit code.

    Args:
        arguments: of the command line; by default those of the process.
    """
    options = _parser().parse_args(arguments)
    try:
        _require_the_extra()
        _serve(options)
    except RegenError as error:
        print(error, file=sys.stderr)  # noqa: T201 - what a command says
        return error.exit_code
    return 0


def _require_the_extra() -> None:
    for name in ("starlette", "uvicorn"):
        try:
            import_module(name)
        except ModuleNotFoundError:
            raise UsageError(
                f"the server needs {name}, which is not installed",
                hint="pip install 'pytest-regen[server]'",
            ) from None


def _serve(options: argparse.Namespace) -> None:
    import uvicorn  # noqa: PLC0415 - there by now

    from pytest_regen.server.app import create_app  # noqa: PLC0415 - as above
    from pytest_regen.server.listening import uvicorn_options  # noqa: PLC0415 - as above
    from pytest_regen.server.settings import LOOPBACK_HOSTS, ServerSettings  # noqa: PLC0415

    if options.host not in _LOOPBACK_ADDRESSES and not options.allow_host:
        raise UsageError(
            f"--host {options.host} is reached from other machines",
            why="a server answers only to the names it knows, or a foreign page could pose as it",
            hint="add --allow-host NAME, the name that is typed to reach it",
        )
    settings = ServerSettings(
        hosts=(*LOOPBACK_HOSTS, *options.allow_host),
        model_seconds=options.timeout,
        shows_prompt=options.show_prompt,
    )
    if options.provider:
        provider = load_provider(options.provider)
    else:
        provider = provider_from_environment(options.model, timeout=options.timeout)
    agent = ClarifyingAgent(provider, model=options.model or "")
    app = create_app(agent, seal=_seal_policy(options), settings=settings)
    uvicorn.run(
        app, host=options.host, port=options.port, log_level="info", **uvicorn_options(settings)
    )


def _seal_policy(options: argparse.Namespace) -> SealPolicy:
    if options.seal == "off":
        return "off"
    key = os.environ.get(KEY_VARIABLE, "")
    if options.seal_key_file is not None:
        key = _key_in(options.seal_key_file)
    if not key:
        raise UsageError(
            "there is no key to seal with",
            why="without one, questions and inferences that come back could be anybody's",
            hint=f'export {KEY_VARIABLE}="$(openssl rand -hex 32)", or --seal off to go without',
        )
    return Sealer({options.seal_key_id: key})


def _key_in(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--seal-key-file {path} cannot be read",
            why=str(error),
            hint="name a text file that holds one key and nothing else",
        ) from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_regen.server", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    add("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")
    add("--allow-host", action="append", default=[], metavar="NAME", help="further name it answers")
    add("--provider", metavar="MODULE:ATTRIBUTE", help="who answers (default: the Anthropic API)")
    add("--model", help="model to ask (default: the provider's)")
    add("--timeout", type=float, default=120.0, metavar="SECONDS", help="for one turn")
    add("--seal", choices=("on", "off"), default="on", help="whether contexts are vouched for")
    add("--seal-key-file", type=Path, metavar="FILE", help=f"default: ${KEY_VARIABLE}")
    add("--seal-key-id", default="1", metavar="ID", help="name of the key, for replacing it")
    add("--show-prompt", action="store_true", help="show on the page what the model was given")
    return parser


if __name__ == "__main__":
    sys.exit(main())
