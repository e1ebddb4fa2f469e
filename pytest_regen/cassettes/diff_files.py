"""Files that hold long differences whole: named at once, written when their cassette's use ends."""

import re
from contextlib import suppress
from pathlib import Path

from pytest_regen.cassettes.differences import whole_differences
from pytest_regen.turns.secrets import scrub_text

__all__ = ["DiffFiles"]


class DiffFiles:
    """The long differences of one cassette in use.

    What is sent may differ inside an event loop, which must not wait for a file.

    Args:
        folder: where the files go; ``None`` for nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._noted: dict[Path, tuple[object, object]] = {}

    def note(self, cassette: Path, number: int, recorded: object, sent: object) -> Path | None:
        """Return the file that will hold a difference, or ``None`` where none is written.

        Args:
            cassette: the cassette.
            number: of the recording compared, from 1.
            recorded: what it holds, scrubbed.
            sent: what was sent, scrubbed.
        """
        if self._folder is None:
            return None
        name = re.sub(r"[^\w.-]", "_", cassette.stem)[:100]
        file = self._folder / f"{name}-{number}.txt"
        self._noted[file] = (recorded, sent)
        return file

    def write(self) -> None:
        """Write what was noted; a file that cannot be written is left out, for all is told."""
        noted, self._noted = self._noted, {}
        for file, (recorded, sent) in noted.items():
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(scrub_text(whole_differences(recorded, sent)), "utf-8")
