"""The project around the working directory: what it fixed for all commands."""

import os
from collections.abc import Callable
from configparser import ConfigParser
from configparser import Error as IniError
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pytest_regen.errors import UsageError
from pytest_regen.modes import STALE_POLICIES, StalePolicy
from pytest_regen.settings import Settings, read_settings

__all__ = ["Project"]

_MARKS = ("pyproject.toml", "pytest.ini", ".pytest.ini")
_INI_SECTIONS = {
    "pytest.ini": "pytest",
    ".pytest.ini": "pytest",
    "tox.ini": "pytest",
    "setup.cfg": "tool:pytest",
}


@dataclass(frozen=True)
class Project:
    """A folder with settings, and what they say.

    Attributes:
        root: the nearest folder with a configuration file; the working directory if there is none.
    """

    root: Path

    @classmethod
    def here(cls) -> "Project":
        """Return the project that the working directory belongs to."""
        start = Path.cwd()
        for folder in (start, *start.parents):
            if any((folder / name).is_file() for name in _MARKS):
                return cls(folder)
        return cls(start)

    @cached_property
    def settings(self) -> Settings:
        """The table ``[tool.pytest-regen]``.

        Raises:
            UsageError: it cannot be read, or a key is wrong.
        """
        return read_settings(self.root)

    @property
    def model(self) -> str | None:
        """The model of all commands: the ini value ``regen_model``, else the table's."""
        return self._ini("regen_model") or self.settings.model

    @property
    def stale(self) -> StalePolicy:
        """What becomes of a stale type: the ini value ``regen_stale``, else the table's.

        Raises:
            UsageError: the ini value is none of the words.
        """
        value = self._ini("regen_stale")
        chosen = next((word for word in STALE_POLICIES if word == value), None)
        if value and chosen is None:
            raise UsageError(
                f"regen_stale = {value}: must be one of {', '.join(STALE_POLICIES)}",
                hint="correct the ini value in the configuration of pytest",
            )
        return chosen or self.settings.stale or "auto"

    def ignored_in(self, store: Path) -> Callable[[str], frozenset[str]]:
        """Return which codes are not reported, by type name, in the store at ``store``."""
        place = Path(os.path.relpath(store, self.root)).as_posix()
        return lambda name: self.settings.ignored(f"{place}::{name}")

    def _ini(self, key: str) -> str | None:
        """Return one of pytest's ini values, from the file that pytest would read it from."""
        for name, section in _INI_SECTIONS.items():
            parser = ConfigParser(interpolation=None)
            try:
                parser.read(self.root / name, "utf-8")
            except (IniError, UnicodeDecodeError) as error:
                raise UsageError(
                    f"{self.root / name} cannot be read", why=str(error), hint="correct the file"
                ) from None
            if parser.has_option(section, key):
                return parser.get(section, key).strip()
        return self._pyproject_ini(key)

    def _pyproject_ini(self, key: str) -> str | None:
        import tomllib  # noqa: PLC0415 - only commands that ask a model come here

        path = self.root / "pyproject.toml"
        if not path.is_file():
            return None
        _ = self.settings  # Told as what it is where it is no TOML.
        pytest = tomllib.loads(path.read_text("utf-8")).get("tool", {}).get("pytest", {})
        options = pytest.get("ini_options", pytest) if isinstance(pytest, dict) else {}
        value = options.get(key) if isinstance(options, dict) else None
        return value if isinstance(value, str) else None
