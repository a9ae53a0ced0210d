"""The body of a completion for an upstream: a raw prompt, which goes to the model as it is."""

from collections.abc import Sequence
from typing import Any

from tis.engine.grammar.grammar import Grammar
from tis.engine.prompt import RawPrompt
from tis.engine.sampling.params import SamplingParams
from tis.upstream.chat_body import form_fields, lacking, salt_fields, sampling_fields
from tis.upstream.kinds import UpstreamAbilities


def completion_body(
    model: str,
    prompt: RawPrompt,
    params: SamplingParams,
    unset: Sequence[str],
    grammar: Grammar | None,
    abilities: UpstreamAbilities,
    cache_salt: str,
) -> dict[str, Any]:
    """Raises BadRequest for what the upstream lacks."""
    sampling = sampling_fields(params, unset, abilities)
    if sampling.pop("logprobs", False):
        if not abilities.has_raw_prompts:
            raise lacking("logprobs")
        sampling["logprobs"] = sampling.pop("top_logprobs")
    body: dict[str, Any] = {
        "model": model,
        "prompt": prompt.text if isinstance(prompt.text, str) else list(prompt.text),
        "stream": True,
        "stream_options": {"include_usage": True},
        **sampling,
        **salt_fields(cache_salt, abilities),
    }
    if not prompt.adds_special_tokens:
        if not abilities.may_add_no_tokens:
            raise lacking("add_special_tokens")
        body["add_special_tokens"] = False
    if grammar:
        if not abilities.grammars:
            raise lacking(grammar.param)
        body |= form_fields(grammar, (), abilities)
    return body
