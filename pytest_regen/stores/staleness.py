"""Whether stored prompts were made from another IR than the one at hand."""

from collections.abc import Mapping
from typing import Any

from pytest_regen.documents.ir import ir_hash

__all__ = ["check_staleness"]


def check_staleness(pages_json: Mapping[str, Any], ir_json: Mapping[str, Any]) -> bool:
    """Return whether ``pages.json`` was generated from a different IR than ``ir.json``.

    Takes the values of the two files as they are: the IR need not be valid. The validation summary
    in it does not count. Which types are stale is told by ``RegenStore.is_stale``.
    """
    return pages_json.get("ir_hash") != ir_hash(ir_json)
