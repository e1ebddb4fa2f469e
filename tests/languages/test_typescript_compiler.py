"""What TypeScript's own compiler says of what prompts ask for, and of what is accepted."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from spelling_tables import spellings, tables
from typescript_sample import TYPESCRIPT, page_of, sample

from pytest_regen.documents.ir import TypeIR
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


NODE_MODULES = Path(os.environ.get("REGEN_NODE_MODULES", "no such folder"))


def joined(type_: TypeIR, profile: str, per_page: int) -> str:
    """Return a type as its pages make it."""
    starts = range(0, max(len(type_.units), 1), per_page)
    pages = [
        page_of(type_, type_.units[start : start + per_page], number, profile)
        for number, start in enumerate(starts, 1)
    ]
    is_enum = type_.kind == "enum"
    return TYPESCRIPT.stitch(pages, name=type_.name, is_enum=is_enum).text


@pytest.mark.skipif(
    not ((NODE_MODULES / ".bin" / "tsc").exists() and (NODE_MODULES / "zod").is_dir()),
    reason="REGEN_NODE_MODULES names no folder with the packages typescript and zod",
)
def test_the_compiler_takes_what_is_written_and_accepted(tmp_path: Path) -> None:
    """Every kind of field in both profiles, whole and in pages; each declaration called right."""
    config = {"compilerOptions": OPTIONS, "include": ["*.ts"]}
    sources = {"tsconfig.json": json.dumps(config)}
    for profile in ("default", "zod"):
        for per_page in (3, 100):
            blocks = [(type_.name, joined(type_, profile, per_page)) for type_ in sample().types]
            source = assemble(blocks, TYPESCRIPT, profile=profile)
            sources[f"written_{profile}_{per_page}.ts"] = source
        header = TYPESCRIPT.header(namespace="", profile=profile)
        heading = f"profile `{profile}`"
        [rows] = tables("TypeScript", heading)
        right = [spellings(row[heading])[0] for row in rows if row["reported as"] == "right"]
        for number, row in enumerate(right):
            name = re.search(r"const ([TE])\b", row)
            inferred = f"export type {name[1]} = z.infer<typeof {name[1]}>;" if name else ""
            end = "" if "infer" in row or profile == "default" else inferred
            sources[f"accepted_{profile}_{number}.ts"] = f"{header}\n{row}\n{end}\n"
    (tmp_path / "node_modules").symlink_to(NODE_MODULES.resolve())
    for file, text in sources.items():
        (tmp_path / file).write_text(text, "utf-8")

    done = subprocess.run(
        [NODE_MODULES / ".bin" / "tsc", "-p", tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert len(sources) > 11
    assert [line for line in done.stdout.splitlines() if "error" in line] == []
