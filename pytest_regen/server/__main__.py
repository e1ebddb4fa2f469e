"""`python -m pytest_regen.server`: serves the subject line agent on this machine."""

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_regen.context.agent import ClarifyingAgent
from pytest_regen.context.sealing import Sealer, SealPolicy
from pytest_regen.errors import RegenError, UsageError
from pytest_regen.extras import needs
from pytest_regen.turns.providers import load_provider, provider_from_environment

if TYPE_CHECKING:
    from pytest_regen.server.settings import Quota

KEY_VARIABLE = "PYTEST_REGEN_SEAL_KEY"
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
_LOOPBACK_ADDRESSES = ("127.0.0.1", "localhost", "::1")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; return the exit code.

    Args:
        arguments: of the command line; by default those of the process.
    """
    options = _parser().parse_args(arguments)
    try:
        _serve(options)
    except RegenError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def _serve(options: argparse.Namespace) -> None:
    with needs("server", "the endpoint and its page"):
        import uvicorn

        from pytest_regen.server.app import create_app
        from pytest_regen.server.listening import uvicorn_options
        from pytest_regen.server.settings import (
            LOOPBACK_HOSTS,
            ServerSettings,
            client_header,
            peer_of,
        )

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
        first_turns=_quotas("--first-turns", options.first_turns),
        second_turns=_quotas("--second-turns", options.second_turns),
    )
    if options.provider:
        provider = load_provider(options.provider)
    else:
        provider = provider_from_environment(options.model, timeout=options.timeout)
    agent = ClarifyingAgent(provider, model=options.model or "")
    client_of = client_header(options.client_header) if options.client_header else peer_of
    app = create_app(agent, seal=_seal_policy(options), settings=settings, client_of=client_of)
    uvicorn.run(
        app, host=options.host, port=options.port, log_level="info", **uvicorn_options(settings)
    )


def _seal_policy(options: argparse.Namespace) -> SealPolicy | None:
    if options.seal == "off":
        return "off"
    key = os.environ.get(KEY_VARIABLE, "")
    if options.seal_key_file is not None:
        key = _key_in(options.seal_key_file)
    if not key:
        if options.seal == "on" or options.old_seal_key:
            raise UsageError(
                "there is no key to seal with",
                why="without one, questions and inferences that come back could be anybody's",
                hint=f'export {KEY_VARIABLE}="$(openssl rand -hex 32)", or --seal off',
            )
        print(
            "warning: unsealed, since there is no key\n"
            "  why:  questions and inferences that come back are believed, whoever wrote them\n"
            f'  next: export {KEY_VARIABLE}="$(openssl rand -hex 32)", or --seal off to go without',
            file=sys.stderr,
        )
        return "off"
    keys = {options.seal_key_id: key}
    for given in options.old_seal_key:
        name, equals, path = given.partition("=")
        if not equals or name in keys:
            raise UsageError(
                f"--old-seal-key {given} names no further key",
                why="it takes ID=FILE, with an id that no other key has",
                hint="--seal-key-id 2026-12 --old-seal-key 2026-11=old.key",
            )
        keys[name] = _key_in(Path(path))
    return Sealer(keys, max_age=options.seal_age)


def _quotas(option: str, given: str) -> "tuple[Quota, ...]":
    """Return quotas as they are written: `30/hour,150/day`, `5/90` for 90 seconds, or `none`."""
    from pytest_regen.server.settings import Quota

    if given == "none":
        return ()
    found = []
    for part in given.split(","):
        limit, _, time = part.strip().partition("/")
        seconds = _SECONDS.get(time.removesuffix("s"), time)
        if not (limit.isdecimal() and str(seconds).isdecimal() and int(limit) and int(seconds)):
            raise UsageError(
                f"{option} {given} is no quota",
                why=f"{part.strip()!r} is not a number of turns, a slash, and a time",
                hint=f"{option} 30/hour,150/day; a time is minute, hour, day or seconds; or none",
            )
        found.append(Quota(int(limit), float(seconds)))
    return tuple(found)


def _key_in(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the file of a seal key, {path}, cannot be read",
            why=str(error),
            hint="name a text file that holds one key and nothing else",
        ) from None


def _seconds(given: str) -> float:
    seconds = float(given)
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{given} is no time: give seconds, 3600")
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pytest_regen.server", description=__doc__, allow_abbrev=False
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    add("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")
    add("--allow-host", action="append", default=[], metavar="NAME", help="further name it answers")
    add("--provider", metavar="NAME", help="who answers, as of pytest-regen (default: the API)")
    add("--model", help="model to ask (default: the provider's)")
    add("--timeout", type=_seconds, default=120.0, metavar="SECONDS", help="for one turn")
    add("--seal", choices=("on", "off"), help="contexts are sealed (default: if there is a key)")
    add("--seal-key-file", type=Path, metavar="FILE", help=f"default: ${KEY_VARIABLE}")
    add("--seal-key-id", default="1", metavar="ID", help="name of the key, for replacing it")
    add("--old-seal-key", action="append", default=[], metavar="ID=FILE", help="still checked")
    add("--seal-age", type=_seconds, default=3600.0, metavar="SECONDS", help="default: an hour")
    add("--first-turns", default="30/hour,150/day", metavar="QUOTAS", help="of each client")
    add("--second-turns", default="60/hour,300/day", metavar="QUOTAS", help="of each client")
    add("--client-header", metavar="NAME", help="header by which your proxy says who asks")
    add("--show-prompt", action="store_true", help="show on the page what the model was given")
    return parser


if __name__ == "__main__":
    sys.exit(main())
