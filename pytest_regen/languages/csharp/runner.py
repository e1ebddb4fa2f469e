"""Runs generated C#: it is compiled, and System.Text.Json loads and dumps what types are asked.

It takes the .NET SDK, version 9 or later. The serializer runs with its default options, as the
rules of validation assume: null is written for what was absent, and of what is invalid only values
of another type are refused.
"""

import json
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from pytest_regen import sandbox
from pytest_regen.documents.ir import Ref, Scalar, TypeIR, UnionOf
from pytest_regen.languages.frames import collect_answers, make_work, read_frame, why_ended
from pytest_regen.languages.runner import Answers, Question, Reply, RunFault, Traits

FORMAT: Final = 1
"""Of the questions; raised when the same code may answer otherwise."""

OLDEST: Final = 9
"""The first version whose serializer reads ``[JsonStringEnumMemberName]``."""

_TRAITS: Final = Traits(
    keeps_offset=False,  # DateTime is as right as DateTimeOffset.
    tells_absence=False,
    partial_formats=frozenset({"time", "duration"}),  # TimeOnly has no offset, TimeSpan no month.
)
_LIMITS: Final = sandbox.Limits(
    seconds=120.0,
    cpu_seconds=240,
    memory=None,  # It reserves address space by the gigabyte.
    file_size=256 << 20,
    folder_size=1 << 30,
    processes=512,
    output=64 << 20,
)
# Because what it prints is read: no greeting, no other language; and nothing may run on.
_ENVIRONMENT: Final = {
    "DOTNET_CLI_TELEMETRY_OPTOUT": "1",
    "DOTNET_GENERATE_ASPNET_CERTIFICATE": "false",
    "DOTNET_NOLOGO": "1",
    "DOTNET_CLI_UI_LANGUAGE": "en",
    "MSBUILDDISABLENODEREUSE": "1",
}
_PROJECT: Final = """\
<Project Sdk="Microsoft.NET.Sdk">
  <PropertyGroup>
    <OutputType>Exe</OutputType>
    <TargetFramework>net{major}.0</TargetFramework>
    <Nullable>enable</Nullable>
    <InvariantGlobalization>true</InvariantGlobalization>
    <UseAppHost>false</UseAppHost>
  </PropertyGroup>
</Project>
"""
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]|\[(\d+)\]")
_PROGRAM: Final = "languages/csharp/Program.cs.txt"
_ERROR: Final = re.compile(
    r"Store\.cs\((\d+),\d+\): error (CS\d+: .*?)(?: \[[^\]]*\])?$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class CSharpRunner:
    """See ``Runner``; for the default profile, whose code needs the base class library alone."""

    traits: Traits = _TRAITS
    is_rare: bool = True

    def missing(self, folder: Path) -> str | None:
        """Return that there is no SDK, or only an old one."""
        if _sdk() is None:
            return f"dotnet {OLDEST} or later is not on the PATH"
        return sandbox.missing()

    def version(self, folder: Path) -> str:
        """Return the version of the SDK."""
        return f"{FORMAT} dotnet {_sdk()}"

    def refuses(
        self, type_: TypeIR, keyword: str, path: Sequence[str | int], value: object
    ) -> bool:
        """Return whether the serializer refuses a value of another type.

        Enums are not asked: their converter takes numbers, and names in any case.
        """
        if type_.kind == "enum" or keyword != "type" or not path or isinstance(value, float):
            return False
        field = next((field for field in type_.fields if field.json_name == path[0]), None)
        if field is None or len(path) > 1 or isinstance(field.type, Ref | UnionOf):
            return False
        is_text = isinstance(field.type, Scalar) and field.type.kind in {"any", "string"}
        return not is_text or field.type == Scalar(kind="string")

    def run(
        self,
        code: str,
        questions: Sequence[Question],
        folder: Path,
        blocks: Mapping[str, tuple[int, int]],
    ) -> Answers:
        """Compile the code once and ask all types in one process."""
        program = shutil.which("dotnet")
        assert program is not None  # asked before
        word = secrets.token_hex(16)
        home = Path(program).resolve().parent
        outcome = sandbox.run(
            [program, "run", "--project", "Behaviour.csproj", "--verbosity", "quiet"],
            stdin=json.dumps(make_work(word, questions)).encode(),
            readable=[home],
            files=project_files(code, (_sdk() or (OLDEST,))[0]),
            environ={**_ENVIRONMENT, "DOTNET_ROOT": str(home)},
            limits=_LIMITS,
        )
        return read_answers(outcome, word, questions)


def project_files(code: str, major: int) -> dict[str, bytes]:
    """Return the files of a project that asks the types of ``code``."""
    return {
        "Behaviour.csproj": _PROJECT.format(major=major).encode(),
        "Program.cs": (files("pytest_regen") / _PROGRAM).read_bytes(),
        "Store.cs": code.encode("utf-8", "surrogatepass"),
    }


def read_answers(outcome: sandbox.Outcome, word: str, questions: Sequence[Question]) -> Answers:
    """Return what the program printed, or what the compiler said instead."""
    printed = outcome.stdout.decode("utf-8", "replace")
    errors = [*_ERROR.finditer(printed)]
    if errors:
        # Each is printed again at the end of a build.
        faults = dict.fromkeys(RunFault(error[2].strip(), line=int(error[1])) for error in errors)
        return Answers({}, tuple(faults))
    # Whatever else the build and the code print stands between them.
    lines = (read_frame(line.encode(), word) for line in printed.splitlines())
    frames = [frame for frame in lines if frame is not None]
    why = why_ended(outcome, "dotnet")
    if frames[:1] != [{"loaded": True}]:
        return Answers({}, (RunFault(why),))
    return collect_answers(questions, frames[1:], why=why, read=_reply, fault=RunFault)


def _reply(text: object, refusal: str | None, where: str) -> Reply:
    if text is None and refusal is None:
        return Reply()
    # The serializer writes a path as ``$.berths[0]['first name']``.
    steps = _STEP.finditer(where or "")
    path = tuple(int(step[3]) if step[3] else step[1] or step[2] for step in steps)
    return Reply((str(text),) if text is not None else (), refusal, path)


def _sdk() -> tuple[int, ...] | None:
    """Return the version of the newest SDK, if it is new enough."""
    program = shutil.which("dotnet")
    folders = (Path(program).resolve().parent / "sdk").glob("*") if program else ()
    names = [re.match(r"(\d+)\.(\d+)\.(\d+)", folder.name) for folder in folders]
    newest = max((tuple(map(int, name.groups())) for name in names if name), default=(0,))
    return newest if newest[0] >= OLDEST else None
