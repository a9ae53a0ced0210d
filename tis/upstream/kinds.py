"""What each kind of upstream understands beyond OpenAI's fields. What it lacks is refused by name, never left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tis.engine.grammar.grammar import Kind as GrammarKind
from tis.engine.models.entry_fields import UpstreamKind

# Fields of SamplingParams that OpenAI has, by its names.
_OPENAI: Mapping[str, str] = {
    name: name
    for name in (
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop", "n"),
        *("logit_bias", "max_tokens", "top_logprobs"),
    )
}
_OF_VLLM = {
    name: name for name in ("top_k", "min_p", "repetition_penalty", "min_tokens", "stop_token_ids", "ignore_eos")
}


@dataclass(frozen=True, slots=True)
class UpstreamAbilities:
    sampling: Mapping[str, str]  # our names of sampling parameters, and its own
    grammars: Mapping[GrammarKind, str] = field(default_factory=dict)  # beside JSON, and what each is called
    boxes_grammars: bool = True  # in `structured_outputs`; else they stand beside the other fields
    takes_template_options: bool = False  # `chat_template_kwargs`
    takes_effort: bool = False  # `reasoning_effort`
    takes_salt: bool = False  # `cache_salt`
    continues: bool = False  # `continue_final_message`: it goes on with an answer that another one began
    continues_behind_reasoning: bool = True  # its prompt has the reasoning of the message that is continued
    may_open_no_turn: bool = True  # `add_generation_prompt: false`
    has_raw_prompts: bool = True  # of completions; else they go into a template
    may_add_no_tokens: bool = False  # `add_special_tokens: false` of completions
    reasoning_name: str = "reasoning_content"  # of a message that was made before
    takes_formats: bool = True  # `response_format`
    takes_media_urls: bool = False  # `video_url` and `audio_url`, beside `image_url`
    forces_calls: bool = True  # `tool_choice: required`
    forces_named_calls: bool = True  # `tool_choice` with the name of a function
    forces_only_strict: bool = False  # arguments of a forced call follow a schema only where the function is `strict`
    counts_chats: bool = False  # `/tokenize` takes messages
    # Fields by which texts that are too long for an embedding or a score are cut. Where there are none they are a 400.
    cuts_texts: Mapping[str, Any] = field(default_factory=dict)


_GRAMMARS: Mapping[GrammarKind, str] = {"regex": "regex", "choice": "choice", "lark": "grammar"}
ABILITIES: Mapping[UpstreamKind, UpstreamAbilities] = {
    "openai": UpstreamAbilities(_OPENAI, takes_effort=True),
    "tis": UpstreamAbilities(
        {**_OPENAI, **_OF_VLLM, "thinking_budget": "thinking_token_budget"},
        _GRAMMARS,
        takes_template_options=True,
        takes_effort=True,
        takes_salt=True,
        takes_media_urls=True,
        continues=True,
        may_add_no_tokens=True,
        counts_chats=True,
        cuts_texts={"truncate": True},
    ),
    "vllm": UpstreamAbilities(
        {**_OPENAI, **_OF_VLLM},
        _GRAMMARS,
        takes_template_options=True,
        takes_effort=True,
        takes_salt=True,
        takes_media_urls=True,
        continues=True,
        may_add_no_tokens=True,
        counts_chats=True,
        cuts_texts={"truncate_prompt_tokens": -1},
    ),
    "sglang": UpstreamAbilities(
        {**_OPENAI, **_OF_VLLM},
        {"regex": "regex", "choice": "ebnf", "lark": "ebnf"},
        boxes_grammars=False,
        takes_template_options=True,
        takes_effort=True,
        takes_salt=True,
        continues=True,
        continues_behind_reasoning=False,
        may_open_no_turn=False,
        forces_named_calls=False,
        forces_only_strict=True,
        counts_chats=True,
        takes_media_urls=True,
    ),
    "llama.cpp": UpstreamAbilities(
        {
            **_OPENAI,
            "top_k": "top_k",
            "min_p": "min_p",
            "repetition_penalty": "repeat_penalty",
            "ignore_eos": "ignore_eos",
        },
        takes_template_options=True,
        takes_effort=True,
        continues=True,
        forces_named_calls=False,
    ),
    "ollama": UpstreamAbilities(
        {ours: theirs for ours, theirs in _OPENAI.items() if ours not in ("n", "logit_bias")},
        takes_effort=True,
        has_raw_prompts=False,
        reasoning_name="reasoning",
        forces_calls=False,
    ),
    "transformers": UpstreamAbilities(
        {name: name for name in ("temperature", "top_p", "seed", "stop", "logit_bias", "max_tokens")},
        takes_template_options=True,
        takes_media_urls=True,
        takes_formats=False,
        forces_calls=False,
    ),
}
