"""IR to pages to prompts, and the correction block that goes before one.

Names are resolved on first use: a language imports the values of this folder, and what builds
prompts imports languages.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_regen.prompts.correction import (
        correction_block,
        list_corrections,
        with_correction,
    )
    from pytest_regen.prompts.plan import (
        Plan,
        estimate_tokens,
        page_content_hash,
        plan_from_entries,
        plan_pages,
    )
    from pytest_regen.prompts.render import build_prompts, estimated_input_tokens, system_prompt
    from pytest_regen.prompts.values import OutputMode, PageKey, PromptEntry, output_mode

__all__ = [
    "OutputMode",
    "PageKey",
    "Plan",
    "PromptEntry",
    "build_prompts",
    "correction_block",
    "estimate_tokens",
    "estimated_input_tokens",
    "list_corrections",
    "output_mode",
    "page_content_hash",
    "plan_from_entries",
    "plan_pages",
    "system_prompt",
    "with_correction",
]

_HOMES = {
    "Plan": "plan",
    "build_prompts": "render",
    "correction_block": "correction",
    "estimate_tokens": "plan",
    "estimated_input_tokens": "render",
    "list_corrections": "correction",
    "page_content_hash": "plan",
    "plan_pages": "plan",
    "plan_from_entries": "plan",
    "system_prompt": "render",
    "with_correction": "correction",
}

if not TYPE_CHECKING:
    # Hidden from the type checker, which would otherwise accept any name.
    def __getattr__(name: str) -> Any:
        """Import the module that holds ``name`` and return the object."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'values')}"), name)
