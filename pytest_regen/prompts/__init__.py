"""IR to pages to prompts, and the correction block that goes before one."""

from typing import TYPE_CHECKING

from pytest_regen.facade import lazy

if TYPE_CHECKING:
    from pytest_regen.prompts.correction import correction_block as correction_block
    from pytest_regen.prompts.correction import list_corrections as list_corrections
    from pytest_regen.prompts.correction import with_correction as with_correction
    from pytest_regen.prompts.plan import page_content_hash as page_content_hash
    from pytest_regen.prompts.plan import plan_from_entries as plan_from_entries
    from pytest_regen.prompts.render import build_prompts as build_prompts
    from pytest_regen.prompts.render import estimated_input_tokens as estimated_input_tokens
    from pytest_regen.prompts.render import estimated_output_tokens as estimated_output_tokens
    from pytest_regen.prompts.render import system_prompt as system_prompt
    from pytest_regen.prompts.values import PromptEntry as PromptEntry
    from pytest_regen.prompts.values import output_mode as output_mode
else:
    __getattr__, __dir__ = lazy(__name__)
