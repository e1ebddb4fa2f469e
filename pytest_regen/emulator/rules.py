"""What the real API refuses, refused here: one function per rule, tried in order.

Wording follows messages seen in recordings and reports where there are any; the rest is ours.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_regen.emulator.call import Call
from pytest_regen.emulator.models import Model, find_model
from pytest_regen.emulator.prompt import places
from pytest_regen.emulator.rules_cache import check_breakpoints
from pytest_regen.emulator.rules_content import check_content, check_signatures, check_tool_results
from pytest_regen.emulator.rules_shape import check_shape
from pytest_regen.emulator.rules_tools import check_tool_choice, check_tools
from pytest_regen.emulator.schemas import check_schemas
from pytest_regen.emulator.wire import ApiError

__all__ = ["check_request"]

_SAMPLING = ("temperature", "top_p", "top_k")
_MIN_BUDGET = 1_024


def check_request(
    body: Mapping[str, Any], *, version: str, batched: bool = False, counting: bool = False
) -> Model:
    """Return the model of a request that the API would accept.

    Args:
        body: the JSON body.
        version: value of the ``anthropic-version`` header.
        batched: the body stands inside a batch.
        counting: the body is one of ``count_tokens``, which has no ``max_tokens``.

    Raises:
        ApiError: the first rule that is broken, as the API words it.
    """
    check_shape(body, counting=counting)
    model = find_model(body["model"])
    if model is None:
        raise ApiError(f"model: {body['model']}", status=404)
    call = Call(body, model, version, batched, counting)
    for rule in _RULES:
        rule(call)
    return model


def _sampling(call: Call) -> None:
    """On API version 2026-10-21, and on models from 4.7 on, no sampling parameter is accepted."""
    if call.version < "2026-10-21" and not call.model.is_modern:
        return
    for name in _SAMPLING:
        if call.body.get(name) is not None:
            raise ApiError(f"`{name}` is deprecated for this model.")


def _output_limit(call: Call) -> None:
    if call.counting:
        return
    asked, allowed = call.body["max_tokens"], call.model.max_output
    if asked > allowed:
        raise ApiError(
            f"max_tokens: {asked} > {allowed}, which is the maximum allowed number of output "
            f"tokens for {call.body['model']}"
        )


def _warming(call: Call) -> None:
    """``max_tokens: 0`` warms the cache, and goes with nothing that shapes an answer."""
    if call.counting or call.body["max_tokens"] != 0:
        return
    reasons = {
        "stream": bool(call.body.get("stream")),
        "thinking": call.thinking.get("type") == "enabled",
        "output_config.format": call.format is not None,
        "tool_choice": call.tool_choice in {"any", "tool"},
        "batches": call.batched,
    }
    for name, given in reasons.items():
        if given:
            raise ApiError(f"max_tokens: 0 is not supported with {name}")


def _batch(call: Call) -> None:
    for name in ("stream", "speed"):
        if call.batched and call.body.get(name):
            raise ApiError(f"{name}: not supported in a batch")


def _thinking(call: Call) -> None:
    kind, model = call.thinking.get("type"), call.model
    if kind == "enabled" and model.is_modern:
        raise ApiError(
            '"thinking.type.enabled" is not supported for this model. Use '
            '"thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        )
    if kind == "disabled" and not model.thinking_optional:
        raise ApiError('"thinking.type.disabled" is not supported for this model.')
    if kind == "adaptive" and not model.has_adaptive_thinking:
        raise ApiError("adaptive thinking is not supported on this model")
    if kind == "enabled":
        _thinking_budget(call)


def _thinking_budget(call: Call) -> None:
    budget = call.thinking.get("budget_tokens")
    if budget is None:
        raise ApiError("thinking.enabled.budget_tokens: Field required")
    if budget < _MIN_BUDGET:
        raise ApiError(
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"
        )
    if not call.counting and budget >= call.body["max_tokens"]:
        raise ApiError("`max_tokens` must be greater than `thinking.budget_tokens`.")


def _effort(call: Call) -> None:
    effort = (call.body.get("output_config") or {}).get("effort")
    if effort is None or effort in call.model.efforts:
        return
    if not call.model.efforts:
        raise ApiError("This model does not support the effort parameter.")
    raise ApiError(
        f"This model does not support effort level '{effort}'. "
        f"Supported levels: {', '.join(call.model.efforts)}."
    )


def _format(call: Call) -> None:
    if call.format is not None:
        if call.format.get("type") != "json_schema":
            raise ApiError("output_config.format.type: Input should be 'json_schema'")
        if any(place.cites for place in places(call.body)):
            raise ApiError("output_config.format: structured output does not go with citations")
    check_schemas(_schemas(call))


def _schemas(call: Call) -> Iterator[tuple[str, object]]:
    """Yield every schema that the reply will be held to."""
    if call.format is not None:
        yield "output_config.format.schema", call.format.get("schema")
    for number, tool in enumerate(call.body.get("tools") or ()):
        if tool.get("strict"):
            yield f"tools.{number}.custom.input_schema", tool.get("input_schema")


def _prefill(call: Call) -> None:
    if call.body["messages"][-1]["role"] != "assistant":
        return
    if not call.model.takes_prefill:
        raise ApiError(
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )
    if call.thinks:
        raise ApiError("Prefilling assistant messages is not supported with thinking.")
    if call.format is not None:
        raise ApiError("Prefilling assistant messages is not supported with output_config.format.")


_RULES: tuple[Callable[[Call], None], ...] = (
    _sampling,
    _output_limit,
    _warming,
    _batch,
    _thinking,
    check_tools,
    check_tool_choice,
    _effort,
    _format,
    check_content,
    check_tool_results,
    _prefill,
    check_breakpoints,
    check_signatures,
)
