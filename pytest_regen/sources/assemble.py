"""Pages to a type, and types to a source file."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from pytest_regen.errors import UsageError
from pytest_regen.languages import DEFAULT_LANGUAGE, find_language
from pytest_regen.languages.base import Language, StitchedType
from pytest_regen.regions.markers import DEFAULT_TAG
from pytest_regen.sources.boundaries import wrap_type_block


def same_leaves(a: str, b: str, *, language: str | Language = DEFAULT_LANGUAGE) -> bool:
    """Return whether two sources differ in white space and line ends alone.

    Comments count: changing one is an edit by hand. White space inside a string counts too.

    Args:
        a: one source.
        b: the other.
        language: the target language or its name.
    """
    if a == b:
        return True
    target = find_language(language)
    return target.leaves(a) == target.leaves(b)


def assemble(
    types: Sequence[tuple[str, str]],
    language: str | Language = DEFAULT_LANGUAGE,
    *,
    namespace: str | None = None,
    profile: str = "default",
    header: str | None = None,
    tag: str = DEFAULT_TAG,
) -> str:
    """Return one source file of all ``types``, in their order.

    Exact: ``extract_type_block`` returns each text byte for byte, whatever it holds.

    Args:
        types: pairs of the name a type is declared as, and its code.
        language: a target language or its name.
        namespace: for the header; ``None`` or "" for none.
        profile: for the header.
        header: the text before the first block, instead of the language's own; "" for none.
        tag: the word in the boundaries.

    Returns:
        The file's text, ending in one line end.

    Raises:
        UsageError: two types have one name, or a name, the namespace or the profile is no good.
    """
    target = find_language(language)
    if header is None:
        header = target.header(namespace=namespace or "", profile=profile)
    twice = [name for name, count in Counter(name for name, _ in types).items() if count > 1]
    if twice:
        raise UsageError(
            f"two types are called {twice[0]!r}",
            why="type names are unique in a source; blocks are found by them",
            hint="rename one of the types",
        )
    parts = [header.rstrip("\n")] if header.strip("\n") else []
    parts += [wrap_type_block(name, code, tag=tag, comment=target.comment) for name, code in types]
    return "\n\n".join(parts) + "\n"


assemble_cs = assemble
"""Another name for ``assemble``."""


def stitch(
    outputs: Sequence[str], *, name: str, is_enum: bool, language: str | Language = DEFAULT_LANGUAGE
) -> StitchedType:
    """Return the pages of one type as one declaration; the same pages are joined once.

    Args:
        outputs: code of the pages, page 1 first.
        name: the name the type is declared as.
        is_enum: whether pages hold enum values, not members.
        language: a target language or its name.
    """
    if isinstance(language, str):
        return _stitched(language, tuple(outputs), name=name, is_enum=is_enum)
    return language.stitch(outputs, name=name, is_enum=is_enum)


# Because a store is validated again after each answer, and most of its pages are as they were.
@lru_cache(maxsize=2048)
def _stitched(language: str, outputs: tuple[str, ...], *, name: str, is_enum: bool) -> StitchedType:
    return find_language(language).stitch(outputs, name=name, is_enum=is_enum)


def stitch_and_assemble(
    all_type_pages: Sequence[tuple[str, bool, Sequence[str]]],
    language: str | Language = DEFAULT_LANGUAGE,
    *,
    namespace: str | None = None,
    profile: str = "default",
    header: str | None = None,
    tag: str = DEFAULT_TAG,
) -> str:
    """Return one source file of all types, each given by its pages.

    Args:
        all_type_pages: for each type its name, whether it is the root, and its pages' code. What
            kind of type it is, page 1 tells.
        language: a target language or its name.
        namespace: see ``assemble``.
        profile: see ``assemble``.
        header: see ``assemble``.
        tag: see ``assemble``.

    Raises:
        UsageError: see ``assemble``.
    """
    target = find_language(language)
    # No ``is_enum``, because page 1 tells by itself whether the members are enum values.
    types = [
        (name, target.stitch(outputs, name=name, is_enum=False).text)
        for name, _, outputs in all_type_pages
    ]
    return assemble(types, language, namespace=namespace, profile=profile, header=header, tag=tag)
