"""Files with units as a run looks at them, and the kinds of the project."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from pytest_regen.errors import RegenError
from pytest_regen.pytest_plugin import names as words
from pytest_regen.pytest_plugin.choices import regen_mark
from pytest_regen.pytest_plugin.looks import Look
from pytest_regen.pytest_plugin.options import plain_usage_error, usage_error
from pytest_regen.pytest_plugin.project import kinds_of
from pytest_regen.regeneration.policies import fixable_issues
from pytest_regen.units import loading, naming
from pytest_regen.validation.issues import Issue


def marked_units(item: pytest.Item) -> list[tuple[Look, str]]:
    """Return the units that the mark of a test names.

    Raises:
        pytest.UsageError: one of them is not there.
    """
    config = item.config
    marked: list[tuple[Look, str]] = []
    kinds = kinds_of(config)
    for unit in regen_mark(item).units:
        place, separator, text = unit.partition("::")
        path = kinds.absolute(place)
        try:
            is_claimed = kinds.kind_of(path) is not None
        except RegenError as error:
            raise plain_usage_error(str(error)) from None
        if not separator or not is_claimed:
            why = "no kind claims the file" if separator else "a unit is named path::name"
            raise usage_error(
                f"{item.nodeid}: regen(unit={unit!r}): there is no such unit",
                why=f"{why}; paths begin at {config.rootpath}",
                hint="correct the mark",
            )
        look = UnitLook.of(config, path)
        marked.append((look, look.known_name(text)))
    return marked


_PREPARED: "pytest.StashKey[bool]" = pytest.StashKey()


class UnitLook(Look):
    """A file with units as it stood when it was first looked at."""

    def prepare(self, items: Sequence[pytest.Item]) -> None:
        """Let kinds do for all files of the run what is cheaper at once."""
        # A worker of pytest-xdist gets its own few items, later.
        if self.config.stash.get(_PREPARED, False) or hasattr(self.config, "workerinput"):
            return
        self.config.stash[_PREPARED] = True
        loading.prepare_kinds(
            kinds_of(self.config),
            [item.path for item in items if isinstance(getattr(item, "look", None), UnitLook)],
        )

    def is_only_read(self, name: str) -> bool:
        """Return whether a unit is code of which its kind runs nothing."""
        return name in self.names and self.view.is_only_read(name)

    def remarks(self, name: str, issues: Sequence[Issue]) -> Mapping[str, Any]:
        """Return the command that the run ends with."""
        # Also where there is nothing: what was said before a unit was regenerated is over.
        lost = name in self.lost
        return {"command": self.view.lost_command(name) if lost else self._ending(name, issues)}

    def _ending(self, name: str, issues: Iterable[Issue]) -> str:
        """Return the command that mends the most of what is wrong, for the whole file."""
        codes, asking = {issue.code for issue in issues}, words.asking_options(self.config)
        if codes == {"LEDGER"} and name in self.names:
            return naming.command("adopt", self.here, name)
        if codes & {"DRIFT", "CONFLICT", "LEDGER", "KIND_ERROR"}:
            return ""  # Somebody has to choose first; the failure says between what.
        if not self.names:
            return naming.command("forget", self.here) if codes == {"ORPHAN"} else ""
        generates = {"STALE", "MISSING_UNIT"}
        if fixable_issues(issue for issue in issues if issue.code not in generates):
            return naming.command("regenerate", self.here, None, "--from-errors", *asking)
        if any(issue.code in generates and not issue.is_by_hand for issue in issues):
            return naming.command("generate", self.here, None, *asking)
        if "STALE" in codes:
            return naming.command("adopt", self.here, None, "--stale")
        if "UNRECORDED" in codes:
            return naming.command("adopt", self.here)
        return naming.command("forget", self.here) if "ORPHAN" in codes else ""
