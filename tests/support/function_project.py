"""A project with one function whose body a model wrote, and tests of the user's own."""

import pytest
from command_line import process

__all__ = ["FAILING", "GOOD", "HOURS", "MODULE", "FunctionProject"]

PYPROJECT = """
[tool.pytest.ini_options]
pythonpath = ["src"]
addopts = "-p no:syrupy {addopts}"

[tool.pytest-regen]
functions = ["src/acme/*.py"]
"""
MODULE = '''
import os


def minutes(text: str) -> int:
    """Return the minutes of ``1h30m``.

    >>> minutes("30m")
    30
    """
    # [REGEN:BEGIN minutes]
    return int(text.removesuffix("m"))
    # [REGEN:END minutes]
'''
FAILING = MODULE.replace('minutes("30m")\n    30', 'minutes("1h30m")\n    90')
"""With an example that the body does not hold."""
TESTS = """
import pytest
from acme.times import minutes

UNIT = "src/acme/times.py::minutes"

{tests}
"""
GOOD = 'hours, _, rest = text.rpartition("h")\nreturn int(hours or 0) * 60 + int(rest[:-1] or 0)'
HOURS = """
@pytest.mark.regen(unit=UNIT)
@pytest.mark.parametrize("text", ["1h30m", "2h"])
def test_hours(text, record_property):
    assert minutes(text) == (90 if "3" in text else 120), "wrong"
"""


class FunctionProject:
    """A project with one recorded function."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.module = pytester.path / "src" / "acme" / "times.py"

    def write(self, tests: str, *, module: str = MODULE, addopts: str = "") -> None:
        """Write the project, and record the function as it stands, right or wrong."""
        self.module.parent.mkdir(parents=True)
        (self.module.parent / "__init__.py").touch()
        self.module.write_text(module, "utf-8")
        settings = PYPROJECT.format(addopts=addopts)
        (self.pytester.path / "pyproject.toml").write_text(settings, "utf-8")
        self.pytester.makepyfile(test_times=TESTS.format(tests=tests))
        assert process("adopt", "src/acme/times.py").code in {0, 1}

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest in this process."""
        return self.pytester.runpytest_inprocess(
            "test_times.py", "--regen", "--regen-record=once", *args
        )
