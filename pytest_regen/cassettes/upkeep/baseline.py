"""What a team has looked at and let stand, so that a check reports only what is new.

The file names kind and cassette of each finding, and a hash of what was found: neither its value
nor its line, so it may be committed, and lines may move.
"""

import json
import os
from collections.abc import Iterable
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from pytest_regen.atomic import replace_file
from pytest_regen.cassettes.strict_json import json_or_none
from pytest_regen.errors import UsageError

__all__ = ["Baseline", "LookedAt"]

_VERSION: Final = 1
_ROUNDS: Final = 20_000
"""Some milliseconds a value: a short password must not be read off its hash at leisure."""
_HASH_BYTES: Final = 16


class LookedAt(NamedTuple):
    """One finding as the baseline knows it."""

    path: str
    """The cassette, from the folder of the baseline, with ``/``."""
    code: str
    """``SECRET`` or ``HEADER``."""
    kind: str
    """The kind of credential, or the name of the header."""
    hash: str


class Baseline:
    """Findings that are not reported again.

    Args:
        path: the file.
        known: what it holds.
        takes_all: whether every finding is to be put into it.
    """

    def __init__(
        self, path: Path, known: Iterable[LookedAt] = (), *, takes_all: bool = False
    ) -> None:
        self.path = path
        self._known = frozenset(known)
        self._takes_all = takes_all
        self._met: set[LookedAt] = set()

    @classmethod
    def read(cls, path: Path, *, takes_all: bool = False) -> "Baseline":
        """Return the baseline at ``path``.

        Args:
            path: the file; it need not be there if it takes all findings.
            takes_all: whether every finding is to be put into it.

        Raises:
            UsageError: it is not there, or is none.
        """
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            if takes_all:
                return cls(path, takes_all=True)
            raise UsageError(
                f"{path} is not there",
                hint="make it with --update-baseline, or name another baseline",
            ) from None
        except OSError as error:
            raise UsageError(
                f"{path}: {error.strerror}", hint="name a baseline that can be read"
            ) from None
        return cls(path, _entries(path, json_or_none(data)), takes_all=takes_all)

    def covers(
        self, cassette: Path, code: Literal["SECRET", "HEADER"], kind: str, value: str
    ) -> bool:
        """Whether a finding was looked at; from now on it was met."""
        if not (self._known or self._takes_all):
            return False
        place = self._place(cassette)
        salt = f"{code}\0{kind}\0{place}".encode("utf-8", "surrogatepass")
        data = value.encode("utf-8", "surrogatepass")
        digest = pbkdf2_hmac("sha256", data, salt, _ROUNDS, _HASH_BYTES).hex()
        found = LookedAt(place, code, kind, digest)
        if not self._takes_all and found not in self._known:
            return False
        self._met.add(found)
        return True

    def outdated(self, checked: Iterable[Path]) -> tuple[LookedAt, ...]:
        """Return entries that were not met although their cassette was checked, or is gone."""
        places = {self._place(path) for path in checked}
        folder = self.path.absolute().parent
        return tuple(
            sorted(
                one
                for one in self._known - self._met
                if one.path in places or not (folder / one.path).exists()
            )
        )

    def write(self, checked: Iterable[Path]) -> int:
        """Write what was met, and what stands in cassettes that were not checked; return how many.

        Raises:
            UsageError: nothing can be written there.
        """
        kept = sorted((self._known | self._met) - {*self.outdated(checked)})
        entries = [one._asdict() for one in kept]
        text = json.dumps({"version": _VERSION, "findings": entries}, indent=2, ensure_ascii=False)
        try:
            replace_file(self.path, f"{text}\n")
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror}", hint="name another file"
            ) from None
        return len(kept)

    def _place(self, cassette: Path) -> str:
        return Path(os.path.relpath(cassette, self.path.absolute().parent)).as_posix()


def _entries(path: Path, value: Any) -> list[LookedAt]:  # noqa: ANN401 - whatever stands there
    listed = value.get("findings") if isinstance(value, dict) else None
    if not isinstance(listed, list) or value.get("version") != _VERSION:
        raise _no_baseline(path, f"it has no list of findings of version {_VERSION}")
    found = []
    for number, one in enumerate(listed, 1):
        names = LookedAt._fields
        if not isinstance(one, dict) or not all(isinstance(one.get(name), str) for name in names):
            wanted = ", ".join(names)
            raise _no_baseline(path, f"finding {number} has not all of {wanted} as text")
        found.append(LookedAt(*(one[name] for name in names)))
    return found


def _no_baseline(path: Path, why: str) -> UsageError:
    return UsageError(
        f"{path} is no baseline",
        why=why,
        hint="name another file, or make this one anew: delete it, then --update-baseline",
    )
