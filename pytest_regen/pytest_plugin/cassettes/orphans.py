"""Recordings that lie where those of tests do and that no collected test asks for."""

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

import pytest

from pytest_regen.cassettes.files.places import name_parts

__all__ = ["is_full_run", "orphans"]

_SUFFIXES = frozenset({".yaml", ".yml", ".json"})
_CHOOSING = ("-k", "-m", "--deselect", "--lf", "--last-failed", "--sw", "--stepwise")
"""Options that run some of the tests."""


def is_full_run(session: pytest.Session) -> bool:
    """Return whether all tests were to run, and it came to the last of them.

    What the settings of a project leave out, they leave out every time: that is its full run.
    """
    config = session.config
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    chosen = any(str(word).startswith(_CHOOSING) for word in config.invocation_params.args)
    option = config.option
    # With this one pytest does not even collect the other tests, wherever it was given.
    part = getattr(option, "lf", False) or option.collectonly
    stopped = session.shouldstop or session.shouldfail or session.exitstatus not in _ENDED
    return not (named or chosen or part or stopped)


_ENDED = frozenset({pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED})


def orphans(
    modules: Mapping[Path, bool], claimed: Collection[Path], config: pytest.Config
) -> Iterator[Path]:
    """Yield recordings that may belong to no test, from beside the modules that use cassettes.

    Args:
        modules: the modules collected, and whether a test of theirs uses cassettes.
        claimed: the recordings that the collected tests say they use.
        config: says what is a module of tests.
    """
    patterns = config.getini("python_files")
    for parent in sorted({module.parent for module, uses in modules.items() if uses}):
        for folder in sorted(path for path in (parent / "cassettes").glob("*") if path.is_dir()):
            module = parent / f"{folder.name}.py"
            files = (p for p in folder.rglob("*") if name_parts(p)[1] in _SUFFIXES and p.is_file())
            left = sorted(file for file in files if file not in claimed)
            if module in modules or any(fnmatch(module.name, one) for one in patterns):
                yield from (file for file in left if _is_unused(module, file, modules))
                yield from (file for file in left if _is_gone_case(file, claimed))


def _is_unused(module: Path, file: Path, modules: Mapping[Path, bool]) -> bool:
    """Whether a module is gone, or was collected and does not name a file.

    What it names may be used by a test that is not collected here, or by ``use_cassette``. A module
    that is there and was not collected says nothing: nobody knows what its tests would use.
    """
    from pytest_regen.cassettes.upkeep.unused import why_unused  # noqa: PLC0415 - few runs come here

    return not module.exists() or (module in modules and bool(why_unused(file)))


def _is_gone_case(file: Path, claimed: Collection[Path]) -> bool:
    """Whether a file is that of one case of a test, of which other cases were collected."""
    test, bracket, _ = file.name.partition("[")
    others = (one.name for one in claimed if one.parent == file.parent)
    return bool(bracket) and any(name.startswith(f"{test}[") for name in others)
