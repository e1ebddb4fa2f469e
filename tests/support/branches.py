"""Projects under git, and two branches of one that are merged."""

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

GIT = shutil.which("git")

_ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"))
    },
}
"""Git as a user has it who set nothing."""


@dataclass(frozen=True)
class Merge:
    """What a merge of two branches left in the folder."""

    conflicts: tuple[str, ...]
    """Files that git could not merge, relative to the project."""


@dataclass(frozen=True)
class Project:
    """A folder under git."""

    folder: Path

    def git(self, *arguments: str, check: bool = True) -> str:
        """Run git in the folder and return what it prints."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.folder,
            env={**os.environ, **_ALONE},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done.stdout

    def commit(self, message: str) -> None:
        """Commit everything that git does not ignore."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def copy(self, folder: Path) -> "Project":
        """Return a copy of the project, its history with it."""
        shutil.copytree(self.folder, folder)
        return Project(folder)

    def merge(self, ours: Callable[[], object], theirs: Callable[[], object]) -> Merge:
        """Do two pieces of work on branches of their own and merge the second into the first."""
        for name, work in (("theirs", theirs), ("ours", ours)):
            self.git("checkout", "--quiet", "-b", name, "main")
            work()
            self.commit(name)
        self.git("merge", "--quiet", "--no-edit", "theirs", check=False)
        return Merge(tuple(self.git("diff", "--name-only", "--diff-filter=U").splitlines()))


def project_in(folder: Path) -> Project:
    """Put a folder under git and commit what is in it."""
    project = Project(folder)
    project.git("init", "--quiet", "--initial-branch", "main")
    project.commit("begin")
    return project
