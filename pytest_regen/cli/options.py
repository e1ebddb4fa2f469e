"""Options that several commands share. Light: every command and every ``--help`` loads it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJson",
    "Attempts",
    "BudgetTokens",
    "CassetteFile",
    "DryRun",
    "Jobs",
    "Model",
    "ProviderName",
    "Record",
    "RecordChoice",
]


class RecordChoice(StrEnum):
    """Record modes, as vcrpy and pytest-recording word them."""

    NONE = "none"
    ONCE = "once"
    NEW_EPISODES = "new_episodes"
    ALL = "all"
    REWRITE = "rewrite"


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be asked; ask and write nothing.")
]
Model = Annotated[
    str | None, typer.Option("--model", help="Model to ask instead of the stored one.")
]
Attempts = Annotated[
    int | None, typer.Option("--attempts", min=1, help="Replies per page at most.")
]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Pages asked at the same time.")]
BudgetTokens = Annotated[
    int | None, typer.Option("--budget", min=1, help="Tokens this command may spend.")
]
CassetteFile = Annotated[
    Path | None, typer.Option("--cassette", help="Recording to replay from, or to record to.")
]
Record = Annotated[RecordChoice, typer.Option("--record", help="Record mode of the cassette.")]
ProviderName = Annotated[
    str | None,
    typer.Option("--provider", metavar="MODULE:ATTR", help="Ask this provider instead of the API."),
]
