"""Stores in the states that commands tell apart."""

from pathlib import Path

from store_factory import FACTORY_IR, MISSPELT, make_store


def fine(path: Path) -> object:
    """Make a store without errors."""
    return make_store(path)


def wrong(path: Path) -> object:
    """Make a store with an error in ``Owner``."""
    return make_store(path, MISSPELT)


def stale(path: Path) -> None:
    """Make a store whose ``Owner`` has moved on since its pages were written."""
    store = make_store(path)
    owner = store.ir.types[1]
    changed = owner.model_copy(update={"description": "Whoever owns it."})
    types = (store.ir.types[0], changed, *store.ir.types[2:])
    ir = FACTORY_IR.model_copy(update={"types": types})
    with type(store).update(path) as tx:
        tx.write(ir=ir)


def edited(path: Path) -> None:
    """Make a store whose ``Owner`` was edited by hand."""
    make_store(path)
    source = path / "ProjectDataObject.cs"
    before, begin, owner = source.read_text("utf-8").partition("BEGIN Owner")
    source.write_text(before + begin + owner.replace("? Name", "? FullName"), "utf-8")


def damaged(path: Path) -> None:
    """Make a store that cannot be read."""
    make_store(path)
    path.joinpath("prompts.json").write_text("[", "utf-8")


def missing(_path: Path) -> None:
    """Make nothing."""
