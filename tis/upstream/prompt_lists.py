"""Several raw prompts with one answer: each is a request of its own at an upstream."""

from collections.abc import Callable, Sequence
from itertools import accumulate

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.errors import GenerationInterrupted
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import Medium
from tis.engine.prompt_list import ListedPrompt, NewAnswer, PromptList
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.upstream.media_parts import files_of
from tis.upstream.no_tokenizer import NO_TOKENIZER
from tis.upstream.upstream_model import UpstreamModel
from tis.upstream.upstream_request import UpstreamRequest


def listed_answer(
    model: UpstreamModel,
    prepared: Sequence[PreparedRequest],
    emitted: Sequence[Sequence[EmittedTokens] | None],
    ticket: Ticket | None,
) -> Answer:
    """`emitted`: of each prompt, if another process began the list."""
    prompts: list[ListedPrompt] = []
    first_choice = 0
    for one, begun in zip(prepared, emitted, strict=True):
        num_unfinished = one.params.n if begun is None else sum(each.finish is None for each in begun)
        prompts.append(ListedPrompt(first_choice, num_unfinished, _request_of(model, one, begun, ticket)))
        first_choice += one.params.n
    listed = PromptList(prompts, model.submit)
    listed.start(is_accepted=emitted[0] is not None)
    return listed.answer


def prepared_again(saved: Sequence[ResumableRequest], media: Sequence[Medium] = ()) -> list[PreparedRequest]:
    """As another process has stored them."""
    return [
        PreparedRequest(
            *(one.model_id, one.revision, NO_TOKENIZER, [], one.params, one.seed),
            cache_salt=one.cache_salt,
            is_raw=one.is_raw,
            media=one.media,
            upstream=one.upstream,
            upstream_media=files_of(media),
        )
        for one in saved
    ]


def choices_of_prompts(
    saved: Sequence[ResumableRequest], emitted: Sequence[EmittedTokens]
) -> list[Sequence[EmittedTokens]]:
    ends = list(accumulate(one.params.n for one in saved))
    return [emitted[end - one.params.n : end] for one, end in zip(saved, ends, strict=True)]


def require_continuable(request: UpstreamRequest, model: UpstreamModel) -> None:
    if request.has_begun and (why := request.why_not_continued(model.abilities)):
        raise GenerationInterrupted(f"The server was restarted during this answer, which cannot go on: {why}.")


def _request_of(
    model: UpstreamModel, prepared: PreparedRequest, begun: Sequence[EmittedTokens] | None, ticket: Ticket | None
) -> Callable[[NewAnswer, bool], UpstreamRequest]:
    def make(new_answer: NewAnswer, is_accepted: bool) -> UpstreamRequest:
        call = prepared.upstream
        assert call
        request = UpstreamRequest(
            *(prepared, call, model.cancel, ticket), is_resumed=is_accepted, emitted=begun, new_answer=new_answer
        )
        require_continuable(request, model)
        return request

    return make
