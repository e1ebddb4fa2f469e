"""The file in which all workers of a run note what they spend from the token budget."""

import shutil
import tempfile
from pathlib import Path

import pytest

__all__ = ["drop_ledger", "make_ledger", "shared_ledger"]

_LEDGER: pytest.StashKey[Path] = pytest.StashKey()


def make_ledger(config: pytest.Config) -> Path:
    """Return the file in which all workers of this run note what they spend."""
    if _LEDGER not in config.stash:
        config.stash[_LEDGER] = Path(tempfile.mkdtemp(prefix="pytest-regen-")) / "budget"
    return config.stash[_LEDGER]


def drop_ledger(config: pytest.Config) -> None:
    """Remove the ledger, if this process made one."""
    ledger = config.stash.get(_LEDGER, None)
    if ledger is not None:
        shutil.rmtree(ledger.parent, ignore_errors=True)


def shared_ledger(config: pytest.Config) -> Path | None:
    """Return the ledger that the controller handed to this worker; none without workers."""
    given: str | None = getattr(config, "workerinput", {}).get("regen_ledger")
    return Path(given) if given else None
