"""Prompts that several stores can have, and how unions and constants look in a prompt."""

import pytest

from pytest_regen.documents.ir import IR, Endpoint, FieldIR, Scalar, TypeIR
from pytest_regen.languages import find_language
from pytest_regen.prompts import PromptEntry, build_prompts

TEXT = Scalar(kind="string")


def store(path: str, *types: TypeIR) -> IR:
    """Return the IR of one operation."""
    return IR(endpoint=Endpoint(method="GET", path=path), language="python", types=types)


def kite(*, is_root: bool = False) -> TypeIR:
    """Return a type that uses no other."""
    field = FieldIR(json_name="id", type=TEXT)
    return TypeIR(name="Kite", schema_id="#/Kite", kind="object", fields=(field,), is_root=is_root)


def other(name: str) -> TypeIR:
    """Return the type of another page."""
    return kite().model_copy(update={"name": name, "schema_id": f"#/{name}"})


def entry_of(ir: IR, *, is_shared: bool) -> PromptEntry:
    """Return the prompt for a kite."""
    entries = build_prompts(ir, language=find_language("python"), is_shared=is_shared)
    return next(entry for entry in entries if entry.type_name == "Kite")


@pytest.mark.parametrize("is_root", [False, True])
def test_a_shared_prompt_is_the_same_in_every_store(*, is_root: bool) -> None:
    """Endpoint, root and other types make no difference; in prompts of one store they do."""
    one = store("/a", kite(), other("Maker"))
    two = store("/b", other("Shop"), kite(is_root=is_root))

    shared = [entry_of(ir, is_shared=True) for ir in (one, two)]
    assert shared[0].prompt_hash == shared[1].prompt_hash
    assert "ENDPOINT" not in shared[0].user
    assert "also in the file" not in shared[0].user
    own = [entry_of(ir, is_shared=False) for ir in (one, two)]
    assert own[0].prompt_hash != own[1].prompt_hash
