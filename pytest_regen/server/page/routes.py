"""The page as requests and answers: each view is whole, with or without JavaScript."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pytest_regen.context.questions import MAX_ANSWER, MAX_LABEL
from pytest_regen.context.requests import parse_context
from pytest_regen.context.values import MAX_DESCRIPTION, Ask, ConversationContext
from pytest_regen.errors import InvalidContextError
from pytest_regen.server.flow import CLIENT_GONE, ClientGoneError, Flow, TurnOutcome, unless_gone
from pytest_regen.server.gazetteer import Gazetteer
from pytest_regen.server.page.fields import (
    SAVED,
    FieldState,
    Form,
    SavedAnswer,
    answers_of,
    answers_to_save,
    is_missing,
    load_saved,
    read_fields,
    restore_answers,
    too_long,
)
from pytest_regen.server.page.views import FormState, questions_page, result_page, start_page
from pytest_regen.server.problems import Problem, log_failure
from pytest_regen.server.requests import (
    FORM,
    read_body,
    read_form,
    read_json,
    request_id_of,
    require_media_type,
    unexpected,
)

_START_AGAIN = frozenset(
    {
        "CONTEXT_TAMPERED",
        "CONTEXT_UNSEALED",
        "CONTEXT_MOVED",
        "CONTEXT_EXPIRED",
        "CONTEXT_FOREIGN_KEY",
        "INVALID_CONTEXT",
    }
)
_WORDS = {
    "CONTEXT_EXPIRED": "These questions are too old to be answered.",
    "MESSAGE_REQUIRED": "Say what should change: nothing is written here yet.",
    "BODY_TOO_LARGE": "That is far more text than fits here: "
    f"at most {MAX_DESCRIPTION:,} characters.",
    "BODY_TIMEOUT": "What you wrote did not arrive in time. Try again.",
}
"""Messages for people, where a program gets another one."""
_UNPROCESSABLE = HTTPStatus.UNPROCESSABLE_ENTITY


class PageRoutes:
    """Answers people.

    Args:
        flow: takes the turns.
        client_of: says who asks.
        gazetteer: the places that can be found.
    """

    def __init__(
        self, flow: Flow, *, client_of: Callable[[Request], str], gazetteer: Gazetteer
    ) -> None:
        self._flow = flow
        self._client_of = client_of
        self._gazetteer = gazetteer

    async def start(self, request: Request) -> Response:
        """Show the first view."""
        return _page(start_page())

    async def back(self, request: Request) -> Response:
        """Send whoever opens an address that only takes forms to the first view."""
        return RedirectResponse("/", HTTPStatus.SEE_OTHER.value)

    async def again(self, request: Request) -> Response:
        """Show the first view with what was written."""
        try:
            form = await self._form(request)
        except Problem as problem:
            return _start_over("", problem)
        return _page(start_page(_value(form, "message")))

    async def describe(self, request: Request) -> Response:
        """Take the first turn."""
        message = ""
        saved: tuple[SavedAnswer, ...] = ()
        try:
            form = await self._form(request)
            message, saved = _value(form, "message"), load_saved(_value(form, SAVED))
            _check_length(message)
            return await self._turn(request, {"message": message}, saved)
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)
        except Exception as error:  # noqa: BLE001 - whatever it is, what was written stays
            return _start_over(message, _problem(request, error), saved)

    async def answer(self, request: Request) -> Response:
        """Take the second turn, or look for a place without JavaScript."""
        try:
            form = await self._form(request)
            state = _read_form_state(form)
        except Problem as unreadable:
            return _start_over("", unreadable)
        fields = read_fields(form, state.context.questions_asked)
        action = _value(form, "action")
        if action.startswith("find."):
            return _page(questions_page(state, self._find_places(action, state, fields)))
        try:
            skipped = action == "skip"
            return await (
                self._send_answers(request, state, {})
                if skipped
                else self._check(request, state, fields)
            )
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)
        except Exception as error:  # noqa: BLE001 - as above
            problem = _problem(request, error)
        if problem.code in _START_AGAIN:
            context = state.context
            saved = answers_to_save(context.questions_asked, fields)
            return _start_over(context.original_description, problem, saved)
        return _page(questions_page(state, fields, problem=problem.message), problem)

    async def _check(
        self, request: Request, state: FormState, fields: Sequence[FieldState]
    ) -> Response:
        questions = state.context.questions_asked
        answers = answers_of(questions, fields, self._gazetteer)
        marked = [
            replace(entry, problem=_problem_of(state.context, question.id, answers))
            if not is_missing(question, answers[question.id])
            else replace(entry, problem="This one is needed: answer it, or skip the questions.")
            for question, entry in zip(questions, fields, strict=True)
        ]
        wrong = [number for number, entry in enumerate(marked) if entry.problem]
        if wrong:
            marked[wrong[0]] = replace(marked[wrong[0]], takes_focus=True)
            return _page(questions_page(state, marked), status=_UNPROCESSABLE)
        return await self._send_answers(request, state, answers)

    async def _send_answers(
        self, request: Request, state: FormState, answers: Mapping[str, object]
    ) -> Response:
        context = state.context.with_answers({k: v for k, v in answers.items() if v is not None})
        data = {
            "message": context.original_description,
            "conversationContext": context.model_dump(mode="json", by_alias=True),
            "interactionId": state.fields["interaction"],
            "seal": state.fields["seal"] or None,
        }
        return await self._turn(request, data)

    async def _turn(
        self, request: Request, data: Mapping[str, object], saved: Sequence[SavedAnswer] = ()
    ) -> Response:
        """Take a turn, unless the person stops waiting for it."""
        client, request_id = self._client_of(request), request_id_of(request)
        accepted = await self._flow.accept(data, client, request_id=request_id)
        return _page(self._shown(await unless_gone(request, self._flow.answer(accepted)), saved))

    def _shown(self, outcome: TurnOutcome, saved: Sequence[SavedAnswer]) -> str:
        result, request = outcome.result, outcome.accepted.request
        if isinstance(result, Ask):
            fields, left = restore_answers(saved, result.questions)
            return questions_page(
                _form_state(outcome),
                fields,
                left=[(answer.question, answer.summary) for answer in left],
            )
        context = request.conversation_context
        return result_page(
            result,
            description=context.original_description if context else request.message,
            context=context,
            prompt=self._flow.visible_prompt(outcome.accepted),
        )

    def _find_places(
        self, action: str, state: FormState, fields: Sequence[FieldState]
    ) -> list[FieldState]:
        wanted = action.removeprefix("find.")
        return [
            replace(
                entry,
                selected=(),
                found=self._gazetteer.search(entry.text or "", level=question.location_level),
            )
            if wanted == f"q{number}"
            else entry
            for number, (question, entry) in enumerate(
                zip(state.context.questions_asked, fields, strict=True)
            )
        ]

    async def _form(self, request: Request) -> Form:
        require_media_type(request, FORM)
        settings = self._flow.settings
        body = await read_body(
            request, limit=settings.max_body_bytes, seconds=settings.body_seconds
        )
        return read_form(body)


def _form_state(outcome: TurnOutcome) -> FormState:
    context = outcome.context()
    wire = context.model_dump(mode="json", by_alias=True, exclude={"answers"})
    return FormState(
        context,
        {
            "context": json.dumps(wire, ensure_ascii=False, separators=(",", ":")),
            "interaction": outcome.accepted.conversation,
            "seal": outcome.seal or "",
        },
    )


def _read_form_state(form: Form) -> FormState:
    fields = {name: _value(form, name) for name in ("context", "interaction", "seal")}
    try:
        context = parse_context(read_json(fields["context"].encode("utf-8")))
    except InvalidContextError:
        raise Problem(
            _UNPROCESSABLE, "INVALID_CONTEXT", "What this page held was changed. Start again."
        ) from None
    return FormState(context.with_answers({}), fields)


def _problem_of(
    context: ConversationContext, question_id: str, answers: Mapping[str, Any]
) -> str | None:
    answer = answers[question_id]
    try:
        context.with_answers({} if answer is None else {question_id: answer})
    except ValidationError:
        limit = MAX_LABEL if answer["kind"] == "place" else MAX_ANSWER
        text = answer.get("text") or answer.get("label") or answer.get("other") or ""
        if len(text) > limit:
            return too_long(len(text), limit)
        return "This is not one of the answers offered: choose one of those shown."
    return None


def _check_length(message: str) -> None:
    if len(message) > MAX_DESCRIPTION:
        raise Problem(
            _UNPROCESSABLE,
            "INVALID_REQUEST",
            too_long(len(message), MAX_DESCRIPTION),
            where="message",
        )


def _problem(request: Request, error: Exception) -> Problem:
    """Return the problem to show for an error, logging one that was not foreseen."""
    if isinstance(error, Problem):
        return error
    log_failure(request_id_of(request), error)
    return unexpected()


def _page(page: str, problem: Problem | None = None, *, status: int = 200) -> Response:
    """Return a view. A browser may keep it for itself, so that Back shows what was typed."""
    headers = {"cache-control": "private, no-cache", **(problem.headers if problem else {})}
    return HTMLResponse(page, problem.status.value if problem else status, headers=headers)


def _start_over(message: str, problem: Problem, saved: Sequence[SavedAnswer] = ()) -> Response:
    words = _WORDS.get(problem.code, problem.message)
    if saved and problem.code in _START_AGAIN:
        words += " Send the description once more; your answers are kept."
    shown = start_page(
        message,
        problem=words,
        invalid=problem.where in {"message", "description"},
        saved=saved,
    )
    return _page(shown, problem)


def _value(form: Form, name: str) -> str:
    values = form.get(name, ())
    return values[0] if values else ""
