"""``emulator``: the Messages API on loopback, answering from a script."""

from pathlib import Path
from typing import Annotated

import typer

from pytest_regen.cli.output import AsJson, emit_json, next_step, say
from pytest_regen.emulator import serve

__all__ = ["emulator"]


def emulator(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes a free one.")] = 0,
    replies: Annotated[
        Path | None, typer.Option("--replies", metavar="FILE", help="YAML script of replies.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a local fake of the Messages API, until stopped. Everything it says is labelled."""

    def tell(base_url: str) -> None:
        if as_json:
            emit_json({"base_url": base_url})
        say(f"emulator of the Messages API on {base_url}; stop it with Ctrl-C")
        next_step(f"export ANTHROPIC_BASE_URL={base_url} ANTHROPIC_API_KEY=any-key")

    serve(port, replies, ready=tell, answered=say)
