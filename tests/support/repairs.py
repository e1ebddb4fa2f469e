"""Repairs of functions, judged as the function kind judges what a model answers."""

from pathlib import Path

from pytest_regen.kinds.functions.kind import Function
from pytest_regen.kinds.functions.source import FunctionRegion
from pytest_regen.units.kind import Unit
from pytest_regen.validation import Issue


def weakened(root: Path, module: str, code: str, test: str = "") -> list[Issue]:
    """Return by what code weakens a module whose only function it replaces."""
    path = root / "lib.py"
    path.write_text(module, "utf-8")
    kind = Function(root, ["lib.py"])
    ((name, span),) = kind.region.find(module).items()
    text = FunctionRegion().replace(module, {name: code})
    old = Unit(name, path, span.text, module, kind)
    new = Unit(name, path, code, text, kind, tests=(test,) if test else ())
    found = [*kind.check(new), *kind.weakens(old, new)]
    return [one for one in found if isinstance(one, Issue) and one.code == "WEAKENED"]
