"""What there is to tell of a cassette, as tests and their workers note it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

__all__ = ["CassetteNote"]


@dataclass(frozen=True, slots=True)
class CassetteNote:
    """One thing to tell about a cassette."""

    kind: Literal["miss", "drift", "unplayed", "orphan", "hint"]
    what: str
    test: str = ""
    """Node id."""
    cassette: str = ""
    """The file, from the rootdir."""
    next: str = ""
    """What to run or to do."""
    failed: bool = False
    """Whether the test failed with it, so that the section need not say it again."""
    causes: tuple[str, ...] = ()
    """What it has in common with notes of other tests: ``$.tool_choice is new``."""

    def __str__(self) -> str:
        name = Path(self.cassette).name
        match self.kind:
            case "orphan":
                return f"orphan: {self.cassette}: {self.what}; {self.next}"
            case "unplayed":
                return f"unplayed: {self.test}: {name}: {self.what}"
            case "hint":
                return f"{self.what}; {self.next}"
            case _:
                return f"{self.kind}: {self.test}: {name}: {self.what}"

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {**asdict(self), "causes": list(self.causes)}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> "CassetteNote":
        """Return what ``to_json`` gave away."""
        return cls(**{**said, "causes": tuple(said["causes"])})
