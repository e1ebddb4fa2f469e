"""A store is validated once; after a change only what it concerns, and the result is the same."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from harbour_store import HARBOUR as OUTPUTS
from harbour_store import harbour_store
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_regen.errors import SourceError
from pytest_regen.regeneration.store_view import with_pages
from pytest_regen.sources import Block, blocks
from pytest_regen.stores import RegenStore
from pytest_regen.validation import validate_store

Edit = Callable[[str], str]

_CONVERTER = "[JsonConverter(typeof(JsonStringEnumConverter))]"

OUTPUT_EDITS: Mapping[str, Edit] = {
    "comment": lambda text: f"// as before\n{text}",
    "shorter": lambda text: "\n".join(line for line in text.split("\n") if line.strip()),
    "field gone": lambda text: text.replace('[JsonPropertyName("state")]', ""),
    "wrong name": lambda text: text.replace('("owner', '("onwer'),
    "unknown type": lambda text: text.replace("State?", "Ghost?").replace("Owner>", "Ghost>"),
    "declares Ghost": lambda text: f"{text}\n\npublic class Ghost {{ }}",
    "nests Ghost": lambda text: text.replace("{\n", "{\n    public class Ghost { }\n", 1),
    "nests State": lambda text: text.replace("{\n", "{\n    public enum State { Open }\n", 1),
    "nests Berth": lambda text: text.replace("{\n", "{\n    public class Berth { }\n", 1),
    "not public": lambda text: text.replace("public class", "internal class").replace(
        "public enum", "internal enum"
    ),
    "no converter": lambda text: text.replace(
        "[JsonConverter(typeof(JsonStringEnumConverter))]", ""
    ),
    "converter at the use": lambda text: text.replace(
        '[JsonPropertyName("state")]',
        '[JsonPropertyName("state")]\n    [JsonConverter(typeof(JsonStringEnumConverter<State>))]',
    ),
    "serializer context": lambda text: (
        f"{text}\n\n[JsonSourceGenerationOptions(UseStringEnumConverter = true)]\n"
        "internal partial class Context : JsonSerializerContext { }"
    ),
    "another kind": lambda text: text.replace("public class", "public enum"),
    "another name": lambda text: text.replace("class ", "class My").replace("enum ", "enum My"),
    "cut": lambda text: text[: len(text) * 2 // 3],
    "brace lost": lambda text: text.replace("}", "", 1),
    "prose": lambda _: "I am sorry, I cannot write this.",
    "nothing": lambda _: "",
    "attribute of Ghost": lambda text: f"[JsonDerivedType(typeof(Ghost))]\n{text}",
    "wrapped": lambda text: text.replace("Owner?", "Nullable<Owner>").replace(
        "State?", "Nullable<State>"
    ),
}
"""What a model may write instead of a right answer; some change what other types may say."""

SOURCE_EDITS: Mapping[str, Edit] = {
    "header": lambda text: f"// by hand\n{text}",
    "Ghost outside": lambda text: f"{text}\npublic class Ghost {{ }}\n",
    "Berth outside": lambda text: f"{text}\npublic class Berth {{ }}\n",
    "alias": lambda text: f"using Ghost = System.String;\n{text}",
    "comment inside": lambda text: text.replace(
        "public class Owner", "// mine\npublic class Owner"
    ),
    "edited": lambda text: text.replace("string?", "string"),
    "block gone": lambda text: _without(text, "Berth"),
    "block twice": lambda text: text + _block(text, "Tide"),
    "moved": lambda text: _without(text, "Owner") + _block(text, "Owner"),
    "no boundaries": lambda text: "\n".join(
        line for line in text.split("\n") if "[REGEN:" not in line
    ),
    "boundary broken": lambda text: text.replace("[REGEN:END Owner]", ""),
    "conflict": lambda text: text.replace("public class Tide", "<<<<<<< HEAD\npublic class Tide"),
}


def _block(source: str, name: str) -> str:
    found = {block.name: source[block.start : block.end] for block in _blocks(source)}
    return f"\n{found.get(name, '')}\n"


def _without(source: str, name: str) -> str:
    for block in _blocks(source):
        if block.name == name:
            return source[: block.start] + source[block.end :]
    return source


def _blocks(source: str) -> Sequence[Block]:
    try:
        return blocks(source)
    except SourceError:
        return ()  # An earlier edit broke the boundaries.


@pytest.fixture(scope="module")
def good() -> Iterator[RegenStore]:
    """A store of five types, validated."""
    with TemporaryDirectory() as folder:
        store = harbour_store(Path(folder) / "store")
        validate_store(store)
        yield store


@dataclass(frozen=True)
class Step:
    """One change of a store: an output of one page, or the source alone."""

    page: tuple[str, int] | None
    edit: str

    def apply(self, store: RegenStore) -> RegenStore:
        """Return the store after the change, which carries the verdicts from before it."""
        if self.page is None:
            return store.with_content(store.pages.values(), SOURCE_EDITS[self.edit](store.source))
        page = next(page for page in store.envelope.pages if page.key[:2] == self.page)
        changed = replace(page, output=OUTPUT_EDITS[self.edit](page.output))
        try:
            return with_pages(store, [changed])
        except SourceError:
            pages = {**store.pages, page.key: changed}
            return store.with_content(pages.values(), store.source)


steps = st.one_of(
    st.builds(Step, st.sampled_from(sorted(OUTPUTS)), st.sampled_from(sorted(OUTPUT_EDITS))),
    st.builds(Step, st.none(), st.sampled_from(sorted(SOURCE_EDITS))),
)


def all_issues(store: RegenStore) -> dict[str, list[str]]:
    """Return all that validation says, the words that only a correction uses included."""
    return {
        name: [repr(i) for i in result.issues] for name, result in validate_store(store).items()
    }


def check(store: RegenStore) -> None:
    """Assert that verdicts carried along are those of a store that was never validated."""
    assert all_issues(store) == all_issues(replace(store, memo={}))


def check_each(store: RegenStore, changes: Iterable[Step]) -> None:
    """Check the verdicts after each of several changes."""
    for step in changes:
        store = step.apply(store)
        check(store)


@given(st.lists(steps, min_size=1, max_size=5))
@settings(max_examples=40)
def test_verdicts_carried_along_are_those_of_a_whole_validation(
    good: RegenStore, changes: list[Step]
) -> None:
    """Whatever changes, and in whatever order: equal to the letter."""
    check_each(good, changes)


@pytest.mark.sweep
@given(st.lists(steps, min_size=1, max_size=8))
@settings(max_examples=500)
def test_verdicts_carried_along_are_right_after_many_changes(
    good: RegenStore, changes: list[Step]
) -> None:
    """The same, for longer."""
    check_each(good, changes)


FAR_REACHING = (
    "attribute of Ghost",
    "converter at the use",
    "declares Ghost",
    "nests Berth",
    "nests Ghost",
    "nests State",
    "no converter",
    "not public",
    "serializer context",
    "unknown type",
    "wrapped",
)
"""Edits of outputs by which other types become right or wrong."""

PAIRS = tuple(
    Step(page, edit)
    for page in (("Owner", 1), ("State", 1), ("Berth", 1), ("Tide", 1))
    for edit in FAR_REACHING
    if OUTPUT_EDITS[edit](OUTPUTS[page]) != OUTPUTS[page]
) + tuple(
    Step(None, edit) for edit in ("Ghost outside", "Berth outside", "alias", "header", "block gone")
)


@pytest.mark.parametrize(
    "first",
    # A quarter in every run, all of them in the sweep.
    [
        pytest.param(each, marks=pytest.mark.sweep) if number % 4 else each
        for number, each in enumerate(PAIRS)
    ],
    ids=str,
)
def test_what_one_change_makes_wrong_another_makes_right(good: RegenStore, first: Step) -> None:
    """Each two changes that reach into other types, one after the other."""
    changed = first.apply(good)
    check(changed)

    for second in PAIRS:
        check(second.apply(changed))


@pytest.mark.parametrize("edit", sorted(OUTPUT_EDITS))
def test_each_change_and_the_way_back(good: RegenStore, edit: str) -> None:
    """A change of a page, and its being undone, leave the verdicts of a whole validation."""
    for page in sorted(OUTPUTS):
        changed = Step(page, edit).apply(good)
        check(changed)

        check(with_pages(changed, [good.pages[key] for key in good.pages if key[:2] == page]))


def test_a_page_that_was_cut_short_is_found_though_its_block_is_the_same(good: RegenStore) -> None:
    """What counts is what the pages say as well, not the text of the source alone."""
    pages = [replace(page, stop_reason="max_tokens") for page in good.envelope.pages]
    store = good.with_content(pages, good.source)

    assert {issue.code for issue in validate_store(store)["Tide"].issues} == {"TRUNCATED"}
    check(store)


def test_a_type_nested_in_the_block_of_another_moves_with_it(good: RegenStore) -> None:
    """Its issues count lines of the source; no block of its own tells that they changed."""
    berth = "    public class Berth { public int Wrong { get; set; } }"
    nested = good.source.replace("class Tide\n{", f"class Tide\n{{\n{berth}")
    store = good.with_content(good.pages.values(), _without(nested, "Berth"))
    assert any(issue.line for issue in validate_store(store)["Berth"].issues)

    check(Step(None, "header").apply(store))


def test_only_what_a_change_concerns_is_validated_again(good: RegenStore) -> None:
    """A type, and those that asked for what it declares or uses; the others keep their verdict."""
    validate_store(good)
    changed = Step(("Owner", 1), "not public").apply(good)
    validate_store(changed)

    before, after = (store.memo["validation"].verdicts.by_name for store in (good, changed))
    again = {name for name in after if after[name].result is not before[name].result}
    assert again == {"ProjectDataObject", "Owner", "Berth"}


def test_a_store_that_is_opened_again_is_the_same_while_no_byte_changed(tmp_path: Path) -> None:
    """So that what one part of a command found out, the next part knows."""
    store = harbour_store(tmp_path / "store")

    assert RegenStore.open(store.path) is store

    store.source_path.write_text(SOURCE_EDITS["edited"](store.source), "utf-8", newline="")
    edited = RegenStore.open(store.path)
    assert edited is not store
    assert "DRIFT" in {i.code for result in validate_store(edited).values() for i in result.issues}
    check(edited)
