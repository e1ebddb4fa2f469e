"""What one wrong field costs, beside regenerating its type and its store.

    python benchmarks/one_field.py

Uses the API description of ``examples/csharp_dto``. Requests go through the real SDK to the
emulator, which counts tokens by its documented estimate; ratios are what counts.
"""

import os
import sys
import tempfile
from pathlib import Path

from table import print_table

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

from reference_writer import ReferenceWriter  # noqa: E402 - found through the line above

from pytest_regen import (  # noqa: E402
    AnthropicProvider,
    CallableProvider,
    Emulator,
    RegenStore,
    TurnSettings,
    generate_store,
    heal_store,
    partial_regenerate,
)
from pytest_regen.turns.values import Usage  # noqa: E402

DOCUMENT = ROOT / "examples" / "csharp_dto" / "api.yaml"
OPERATION = "GET /v1/port-calls/{callId}"
TYPE = "PortCallDataObject"


def main() -> None:
    """Print a row per amount of work, then what an added field asks."""
    with tempfile.TemporaryDirectory() as folder, Emulator(ReferenceWriter()) as emulator:
        provider = AnthropicProvider(api_key="none-needed", base_url=emulator.base_url)
        whole = generate_store(DOCUMENT, OPERATION, folder, provider=provider)
        path = whole.plan.path
        store = RegenStore.open(path)
        fields = sum(len(type_.fields) for type_ in store.ir.types)
        spoil(path, page=2)
        outcome = heal_store(path, settings=TurnSettings(provider))
        a_type = partial_regenerate(path, [TYPE], provider=provider)
        rows = [
            row("the wrong field (its page)", outcome.calls, outcome.usage, whole.usage),
            row(f"its type, {TYPE}", a_type.calls, a_type.usage, whole.usage),
            row(
                f"the store, {len(store.ir.types)} types, {fields} fields",
                whole.calls,
                whole.usage,
                whole.usage,
            ),
        ]
        print_table(("regenerated", "calls", "tokens", "of the store"), rows)
        print()
        pages = pages_asked(Path(folder))
        print(f"After one field was added to the document, `generate` asked for {pages} page.")


def spoil(path: Path, *, page: int) -> None:
    """Misspell one JSON name on one page of the root."""
    good = RegenStore.open(path).pages_of(TYPE)[page - 1].output
    before, name, after = good.partition('JsonPropertyName("')
    worse = f"{before}{name}x{after}"
    careless = CallableProvider(lambda _messages: worse)
    partial_regenerate(path, [TYPE], {TYPE: [page]}, provider=careless, accept_any=True)


def row(what: str, calls: int, usage: Usage, whole: Usage) -> tuple[str, ...]:
    """Return one row of the table."""
    share = usage.total_tokens / whole.total_tokens
    return what, str(calls), f"{usage.total_tokens:,}", f"{share:.1%}"


def pages_asked(folder: Path) -> int:
    """Add a field to the root in a copy of the document; return the pages that an update asks."""
    text = DOCUMENT.read_text("utf-8")
    marker = "    PortCall:\n"
    assert marker in text
    at = text.index("      properties:\n", text.index(marker)) + len("      properties:\n")
    changed = folder / "api.yaml"
    changed.write_text(text[:at] + "        addedLater: { type: string }\n" + text[at:], "utf-8")
    os.utime(changed)
    return len(generate_store(changed, OPERATION, folder, dry_run=True).asked)


if __name__ == "__main__":
    main()
