"""IR to pages to prompts, and the correction block that goes before one."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.prompts.correction import (
        correction_block,
        list_corrections,
        with_correction,
    )
    from pytest_regen.prompts.plan import (
        Plan,
        page_content_hash,
        plan_from_entries,
        plan_pages,
    )
    from pytest_regen.prompts.render import (
        build_prompts,
        estimated_input_tokens,
        estimated_output_tokens,
        system_prompt,
    )
    from pytest_regen.prompts.values import OutputMode, PageKey, PromptEntry, output_mode
else:
    __getattr__, __dir__ = lazy(__name__)

__all__ = [
    "OutputMode",
    "PageKey",
    "Plan",
    "PromptEntry",
    "build_prompts",
    "correction_block",
    "estimated_input_tokens",
    "estimated_output_tokens",
    "list_corrections",
    "output_mode",
    "page_content_hash",
    "plan_from_entries",
    "plan_pages",
    "system_prompt",
    "with_correction",
]
