"""What the types of a store are, and what is asked for them: the same for all its pages."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_regen.canonical import canonical_hash
from pytest_regen.documents.ir import IR, TypeIR, ir_hash, type_hash
from pytest_regen.errors import UnknownTypeError
from pytest_regen.prompts.values import PageKey, PromptEntry
from pytest_regen.store_folders import IR_FILE
from pytest_regen.stores.formats import ir_as_json, read_ir
from pytest_regen.strict_json import as_json, parse_json


class Plan:
    """``ir.json`` and ``prompts.json`` of a store.

    A value that states of a store share, because most of what follows from it takes long.
    """

    def __init__(
        self, path: Path, prompts: Sequence[PromptEntry], ir_data: bytes, prompts_data: bytes
    ) -> None:
        self.path = path
        self.prompts = tuple(prompts)
        self.ir_data = ir_data
        """``ir.json`` as it is in the folder."""
        self.prompts_data = prompts_data
        """``prompts.json`` as it is in the folder."""

    @classmethod
    def of(cls, path: Path, ir: IR, prompts: Sequence[PromptEntry]) -> "Plan":
        """Return the plan that is not written yet; raises UnicodeEncodeError for half a pair."""
        prompts_data = as_json([entry.to_json() for entry in prompts])
        plan = cls(path, prompts, ir_as_json(ir), prompts_data)
        if ir.validation is None:
            # As it would be read from its JSON, which takes longer.
            findings: dict[str, Any] = {"validation": {type_.name: [] for type_ in ir.types}}
            plan.__dict__["ir"] = ir.model_copy(update=findings)
        return plan

    @cached_property
    def ir(self) -> IR:
        """What the types were read as; raises StoreCorruptError."""
        return read_ir(self.ir_data, self.path / IR_FILE)

    @cached_property
    def by_type(self) -> Mapping[str, tuple[PromptEntry, ...]]:
        """The prompts of each type, by page."""
        entries: dict[str, list[PromptEntry]] = {}
        for entry in self.prompts:
            entries.setdefault(entry.type_name, []).append(entry)
        return {
            name: tuple(sorted(listed, key=lambda entry: entry.page))
            for name, listed in entries.items()
        }

    @cached_property
    def types(self) -> Mapping[str, TypeIR]:
        """The types of the IR by name."""
        return {type_.name: type_ for type_ in self.ir.types}

    @cached_property
    def hashes(self) -> Mapping[str, str]:
        """The hash of each type."""
        return {name: type_hash(type_) for name, type_ in self.types.items()}

    @cached_property
    def _spelt(self) -> Mapping[str, Any]:
        spelt: dict[str, Any] = parse_json(self.ir_data, self.path / IR_FILE)
        return spelt

    @cached_property
    def _spelt_hashes(self) -> frozenset[tuple[str, str]]:
        return frozenset((type_["name"], canonical_hash(type_)) for type_ in self._spelt["types"])

    def has_type(self, name: str, hash_: str) -> bool:
        """Return whether a hash is that of a type, as this release spells it or the file does.

        A release that adds a key to types must not make all of them stale.
        """
        return self.hashes.get(name) == hash_ or (name, hash_) in self._spelt_hashes

    def is_of(self, recorded: str | None) -> bool:
        """Return whether a hash is that of the whole IR, spelt in either way."""
        return recorded is None or recorded in {self._hash, ir_hash(self._spelt)}

    @cached_property
    def _hash(self) -> str:
        return ir_hash(self.ir)

    @cached_property
    def edited_prompts(self) -> tuple[PageKey, ...]:
        """Prompts that are not as they were made: their text or their fields were edited."""
        return tuple(entry.key for entry in self.prompts if entry.is_edited)

    def resolve_type(self, name: str) -> str:
        """Return the declared name meant by ``name``: that name itself, or the schema's.

        Raises:
            UnknownTypeError: none is meant, or several; the hint lists them.
        """
        if name in self.by_type:
            return name
        meant = []
        for type_ in self.ir.types:
            last = type_.schema_id.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
            if type_.name in self.by_type and name in (type_.schema_id, last):
                meant.append(type_.name)
        if len(meant) == 1:
            return meant[0]
        what, why = f"{self.path} has no type {name!r}", ""
        if meant:
            what = f"{name!r} is the schema of several types in {self.path}"
            why = "a type is meant by the name its source declares"
        hint = f"name one of: {', '.join(meant or self.by_type)}"
        raise UnknownTypeError(what, why=why, hint=hint)
