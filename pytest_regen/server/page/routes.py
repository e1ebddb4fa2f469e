"""The page as requests and answers: each view is whole, with or without JavaScript."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from pytest_regen.context.requests import parse_context
from pytest_regen.context.values import Ask, ConversationContext
from pytest_regen.errors import InvalidContextError
from pytest_regen.server.bodies import FORM, read_body, read_form, read_json, require_media_type
from pytest_regen.server.flow import Answered, Flow
from pytest_regen.server.gazetteer import Gazetteer
from pytest_regen.server.page.fields import Filled
from pytest_regen.server.page.filling import answers_of, filled_in, unanswered
from pytest_regen.server.page.questions import Held, questions_page
from pytest_regen.server.page.result import result_page
from pytest_regen.server.page.start import start_page
from pytest_regen.server.problems import Problem

__all__ = ["Page"]

Form = Mapping[str, Sequence[str]]
_START_AGAIN = frozenset(
    {
        "CONTEXT_TAMPERED",
        "CONTEXT_UNSEALED",
        "CONTEXT_MOVED",
        "CONTEXT_EXPIRED",
        "CONTEXT_FOREIGN_KEY",
        "CONTEXT_SPENT",
        "INVALID_CONTEXT",
    }
)
_UNPROCESSABLE = HTTPStatus.UNPROCESSABLE_ENTITY


class Page:
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

    async def start(self, request: Request) -> Response:  # noqa: ARG002 - the signature of a route
        """Show the first view."""
        return HTMLResponse(start_page())

    async def back(self, request: Request) -> Response:  # noqa: ARG002 - as above
        """Send whoever opens an address that only takes forms to the first view."""
        return RedirectResponse("/", HTTPStatus.SEE_OTHER.value)

    async def describe(self, request: Request) -> Response:
        """Take the first turn."""
        message = ""
        try:
            form = await self._form(request)
            message = _one(form, "message")
            taken = await self._flow.take({"message": message}, self._client_of(request))
            answered = await self._flow.answer(taken)
        except Problem as problem:
            return _started_again(message, problem)
        return HTMLResponse(self._shown(answered))

    async def answer(self, request: Request) -> Response:
        """Take the second turn, or look for a place without JavaScript."""
        try:
            form = await self._form(request)
            held = _held(form)
        except Problem as problem:
            return _started_again("", problem)
        filled = filled_in(form, held.context.questions_asked)
        action = _one(form, "action")
        if action.startswith("find."):
            return HTMLResponse(questions_page(held, self._found(action, held, filled)))
        try:
            if action == "skip":
                return await self._answered(request, held, {})
            return await self._checked(request, held, filled)
        except Problem as problem:
            if problem.code in _START_AGAIN:
                return _started_again(held.context.original_description, problem)
            return HTMLResponse(
                questions_page(held, filled, problem=problem.message),
                problem.status.value,
                headers=problem.headers,
            )

    async def _checked(self, request: Request, held: Held, filled: Sequence[Filled]) -> Response:
        questions = held.context.questions_asked
        answers = answers_of(questions, filled, self._gazetteer)
        marked = [
            replace(entry, problem=_problem_of(held.context, question.id, answers))
            if not unanswered(question, answers[question.id])
            else replace(entry, problem="This one is needed: answer it, or skip the questions.")
            for question, entry in zip(questions, filled, strict=True)
        ]
        if any(entry.problem for entry in marked):
            return HTMLResponse(questions_page(held, marked), _UNPROCESSABLE.value)
        return await self._answered(request, held, answers)

    async def _answered(
        self, request: Request, held: Held, answers: Mapping[str, object]
    ) -> Response:
        context = held.context.answered({k: v for k, v in answers.items() if v is not None})
        data = {
            "message": context.original_description,
            "conversationContext": context.model_dump(mode="json", by_alias=True),
            "interactionId": held.fields["interaction"],
            "seal": held.fields["seal"] or None,
        }
        taken = await self._flow.take(data, self._client_of(request))
        return HTMLResponse(self._shown(await self._flow.answer(taken)))

    def _shown(self, answered: Answered) -> str:
        result, request = answered.result, answered.taken.request
        if isinstance(result, Ask):
            return questions_page(_holding(answered))
        context = request.conversation_context
        return result_page(
            result,
            description=context.original_description if context else request.message,
            sent=self._flow.prompt_shown(answered.taken),
        )

    def _found(self, action: str, held: Held, filled: Sequence[Filled]) -> list[Filled]:
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
                zip(held.context.questions_asked, filled, strict=True)
            )
        ]

    async def _form(self, request: Request) -> Form:
        require_media_type(request, FORM)
        settings = self._flow.settings
        body = await read_body(
            request, limit=settings.max_body_bytes, seconds=settings.body_seconds
        )
        return read_form(body)


def _holding(answered: Answered) -> Held:
    context = answered.context()
    wire = context.model_dump(mode="json", by_alias=True, exclude={"answers"})
    return Held(
        context,
        {
            "context": json.dumps(wire, ensure_ascii=False, separators=(",", ":")),
            "interaction": answered.taken.conversation,
            "seal": answered.seal or "",
        },
    )


def _held(form: Form) -> Held:
    fields = {name: _one(form, name) for name in ("context", "interaction", "seal")}
    try:
        context = parse_context(read_json(fields["context"].encode("utf-8")))
    except InvalidContextError:
        raise Problem(
            _UNPROCESSABLE, "INVALID_CONTEXT", "What this page held was changed. Start again."
        ) from None
    return Held(context.answered({}), fields)


def _problem_of(
    context: ConversationContext, question_id: str, answers: Mapping[str, object]
) -> str | None:
    answer = answers[question_id]
    try:
        context.answered({} if answer is None else {question_id: answer})
    except ValidationError:
        return "This answer does not fit: it is too long, or not one of those offered."
    return None


def _started_again(message: str, problem: Problem) -> Response:
    shown = start_page(
        message, problem=problem.message, invalid=problem.where in {"message", "description"}
    )
    return HTMLResponse(shown, problem.status.value, headers=problem.headers)


def _one(form: Form, name: str) -> str:
    values = form.get(name, ())
    return values[0] if values else ""
