"""What TypeScript's own compiler says of what prompts ask for, and of what is accepted."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from spelling_tables import spellings, tables
from typescript_mistakes import TYPESCRIPT, page_of
from typescript_sample import sample

from pytest_regen.documents.ir import IR, TypeIR
from pytest_regen.sources import assemble

OPTIONS = {
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noUnusedLocals": True,
    "verbatimModuleSyntax": True,
    "isolatedModules": True,
    "noEmit": True,
    "skipLibCheck": True,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": [],
}


@pytest.fixture(scope="module")
def node_modules() -> Path:
    """Return the folder that holds the packages ``typescript`` and ``zod``."""
    folder = Path(os.environ.get("REGEN_NODE_MODULES", "no such folder"))
    if not ((folder / ".bin" / "tsc").exists() and (folder / "zod").is_dir()):
        pytest.skip("REGEN_NODE_MODULES names no folder with the packages typescript and zod")
    return folder


def compile_all(node_modules: Path, folder: Path, sources: Mapping[str, str]) -> list[str]:
    """Return the errors of the compiler, of all sources in one run."""
    (folder / "node_modules").symlink_to(node_modules.resolve())
    config = {"compilerOptions": OPTIONS, "include": ["*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config), "utf-8")
    for name, source in sources.items():
        (folder / f"{name}.ts").write_text(source, "utf-8")
    done = subprocess.run(
        [node_modules / ".bin" / "tsc", "-p", folder],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return [line for line in done.stdout.splitlines() if "error" in line]


def source_of(ir: IR, profile: str, per_page: int) -> str:
    """Return a whole source, its types joined from pages."""
    return assemble(
        [(type_.name, joined(type_, profile, per_page)) for type_ in ir.types],
        TYPESCRIPT,
        profile=profile,
    )


def joined(type_: TypeIR, profile: str, per_page: int) -> str:
    """Return a type as its pages make it."""
    starts = range(0, max(len(type_.units), 1), per_page)
    pages = [
        page_of(type_, type_.units[start : start + per_page], number, profile).text
        for number, start in enumerate(starts, 1)
    ]
    is_enum = type_.kind == "enum"
    return TYPESCRIPT.stitch(pages, name=type_.name, is_enum=is_enum).text


def right_rows(heading: str) -> Sequence[str]:
    """Return the declarations that a table of the documentation calls right."""
    [rows] = tables("TypeScript", heading)
    return [spellings(row[heading])[0] for row in rows if row["reported as"] == "right"]


def test_the_compiler_takes_what_is_written_and_accepted(
    node_modules: Path, tmp_path: Path
) -> None:
    """Every kind of field in both profiles, whole and in pages; each declaration called right."""
    ir = sample()
    sources = {
        f"written_{profile}_{per_page}": source_of(ir, profile, per_page)
        for profile in ("default", "zod")
        for per_page in (3, 100)
    }
    for profile in ("default", "zod"):
        header = TYPESCRIPT.header(namespace="", profile=profile)
        for number, row in enumerate(right_rows(f"profile `{profile}`")):
            name = re.search(r"const ([TE])\b", row)
            inferred = f"export type {name[1]} = z.infer<typeof {name[1]}>;" if name else ""
            end = "" if "infer" in row or profile == "default" else inferred
            sources[f"accepted_{profile}_{number}"] = f"{header}\n{row}\n{end}\n"

    assert len(sources) > 10
    assert compile_all(node_modules, tmp_path, sources) == []
