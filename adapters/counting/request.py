"""The way in: a native request, or a text, and the model it is for; out come its tokens with parts and bounds."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from adapters.counting.claude import count_messages
from adapters.counting.deepseek import count_deepseek
from adapters.counting.gemini import count_generate_content
from adapters.counting.native import Json, check_depth
from adapters.counting.openai import count_chat, count_responses
from adapters.counting.rules import CountingRule, FoundRule, Service, rule_for
from adapters.counting.sums import Sum
from adapters.tokenizers import Tokenizers
from graph.model import errors
from graph.model.answer import CountMethod, TokenCount
from graph.model.base import Model

NOTES: dict[str, str] = {
    "no_tokenizer": "The tokenizer of this model is not installed; tokens were estimated from bytes.",
    "model_not_listed": "No rule lists this model; those of its family, or of no family, were used.",
    "image_by_rule": "An image was counted by the vendor's published rule, which is not exact.",
    "image_size_unknown": "The size of an image is not known; its tokens were guessed.",
    "file_not_read": "A file, audio or video was guessed: what it costs depends on what is in it.",
    "reasoning_encrypted": "Encrypted reasoning was guessed from its length.",
    "kept_by_the_vendor": "A part of the context is kept by the vendor and not in the request; it is not counted.",
    "tool_of_the_vendor": "A tool that the vendor runs was guessed; its hidden prompt is not published.",
    "calls_at_once": "Calls made at the same time cost more here than is known; the upper bound holds what was seen.",
    "item_of_the_vendor": "An item of another kind was guessed from its size.",
    "block_of_the_vendor": "A block of another kind was guessed from its size.",
    "part_of_the_vendor": "A part of another kind was guessed from its size.",
    "schema_refers_to_itself": "A schema that refers to itself is written out some levels deep by the vendor; what that costs was guessed.",
    "answer_schema": "What a schema of the answer costs was guessed.",
}
"""What each code of a note says to people."""


class CountedRequest(Model):
    """A request's tokens; ``notes`` are codes of ``NOTES`` for what was not counted but guessed."""

    api: str
    family: str
    rule: str = Field(description="Whose numbers were used, for people.")
    tokens: TokenCount
    notes: list[str]


def count_request(model: str, request: dict[str, Any], tokenizers: Tokenizers, *, service: Service = Service.DEVELOPER) -> CountedRequest:
    """Count a whole native request for this model. The endpoint is told from its fields: contents, messages or input.

    A model of no family that is asked as OpenAI's are gets an estimate by o200k_base.

    Raises:
        UnknownModel: no family recognises the model, and the request is not in one of OpenAI's forms.
        InvalidField: the request is in a form that the model's family does not take.
        InvalidJson: it nests too deeply.
    """
    check_depth(request)
    found = rule_for(model)
    if found is None:
        if not {"messages", "input"} & set(request):
            raise errors.UnknownModel
        found = _any_model()
    counts = Sum(found.rule.text, tokenizers)
    api = _count(counts, request, found.rule, service)
    if not found.known:
        counts.notes.setdefault("model_not_listed")
        counts.worst(CountMethod.CALIBRATED if found.family else CountMethod.ESTIMATE)
    return CountedRequest(api=api, family=found.family, rule=found.rule.name, tokens=counts.total(), notes=list(counts.notes))


def count_text(model: str, text: str, tokenizers: Tokenizers) -> CountedRequest:
    """Count a text as the one user message of a request. Raises UnknownModel."""
    found = rule_for(model)
    if found is None:
        raise errors.UnknownModel
    request: Json = {"messages": [{"role": "user", "content": text}]}
    if found.rule.gemini is not None:
        request = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    return count_request(model, request, tokenizers)


def _count(counts: Sum, request: Json, rule: CountingRule, service: Service) -> str:
    """Count by the form that the rule and the request share; returns its name."""
    if "messages" in request:
        if rule.claude is not None:
            count_messages(counts, request, rule, rule.claude)
            return "anthropic.messages"
        if rule.deepseek is not None:
            count_deepseek(counts, request, rule, rule.deepseek)
            return "deepseek.chat.completions"
        if rule.chat is not None:
            count_chat(counts, request, rule, rule.chat)
            return "openai.chat.completions"
    if "input" in request and rule.responses is not None:
        count_responses(counts, request, rule, rule.responses)
        return "openai.responses"
    if "contents" in request and rule.gemini is not None:
        frame = rule.vertex if service is Service.VERTEX and rule.vertex is not None else rule.gemini
        count_generate_content(counts, request, rule, frame)
        return "google.generate_content"
    raise errors.InvalidField(
        "The request is not in a form that this model's family takes.",
        hint="Send what you would send to the vendor: messages for GPT, DeepSeek and Claude, input for Responses, contents for Gemini.",
    )


def _any_model() -> FoundRule:
    """The rule of GPT-4o with the error of another tokenizer."""
    found = rule_for("gpt-4o")
    assert found is not None
    text = found.rule.text.model_copy(update={"weights": {"tokens": 1.1}, "error_one": 0.45, "error_many": 0.3})
    rule = found.rule.model_copy(update={"name": "a model of no known family", "text": text, "responses": found.rule.responses})
    return FoundRule(family="", rule=rule, known=False)
