"""Metrics of what models compute, each with the name of its model. Names and buckets are those of vLLM.

Names of models come from the catalogue: a closed set.
"""

from typing import Literal, TypeAlias

from prometheus_client import Counter, Histogram

from tis.observability.metrics import REGISTRY, TokenCounter, TokenHistogram

FinishedReason: TypeAlias = Literal["stop", "length", "content_filter", "abort", "error"]

_MODEL = ["model_name"]
_WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_FIRST_TOKEN_BUCKETS = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)
_TOKEN_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10)
_ANSWER_BUCKETS = (0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960)
_LENGTH_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


def _histogram(name: str, documentation: str, buckets: tuple[float, ...]) -> Histogram:
    return Histogram(name, documentation, _MODEL, buckets=buckets, registry=REGISTRY)


QUEUE_SECONDS = _histogram("tis_request_queue_time_seconds", "Waits for the model", _WAIT_BUCKETS)
FIRST_TOKEN_SECONDS = _histogram(
    "tis_time_to_first_token_seconds", "From the arrival of a request to its first token", _FIRST_TOKEN_BUCKETS
)
INTER_TOKEN_SECONDS = TokenHistogram(
    "tis_inter_token_latency_seconds", "Between two steps of an answer with new tokens", _TOKEN_BUCKETS, _MODEL
)
TIME_PER_TOKEN_SECONDS = _histogram(
    "tis_request_time_per_output_token_seconds", "Mean time per token of a request, after its first", _TOKEN_BUCKETS
)
ANSWER_SECONDS = _histogram(
    "tis_e2e_request_latency_seconds", "From the arrival of a request to its last token", _ANSWER_BUCKETS
)
PREFILL_SECONDS = _histogram(
    "tis_request_prefill_time_seconds", "From the model's first work on a request to its first token", _ANSWER_BUCKETS
)
DECODE_SECONDS = _histogram(
    "tis_request_decode_time_seconds", "From the first to the last token of a request", _ANSWER_BUCKETS
)
INFERENCE_SECONDS = _histogram(
    "tis_request_inference_time_seconds", "From the model's first work on a request to its last token", _ANSWER_BUCKETS
)
PROMPT_LENGTHS = _histogram("tis_request_prompt_tokens", "Tokens of the prompt of a request", _LENGTH_BUCKETS)
ANSWER_LENGTHS = _histogram("tis_request_generation_tokens", "Tokens that a request made", _LENGTH_BUCKETS)
PROMPT_TOKENS = TokenCounter("tis_prompt_tokens", "Tokens of prompts", _MODEL)
GENERATION_TOKENS = TokenCounter("tis_generation_tokens", "Tokens of answers", _MODEL)
CACHE_QUERIES = TokenCounter("tis_prefix_cache_queries", "Tokens of prompts that the KV cache was asked for", _MODEL)
CACHE_HITS = TokenCounter("tis_prefix_cache_hits", "Tokens of prompts found in the KV cache", _MODEL)
FINISHED = Counter(
    "tis_request_success", "Finished answers, by reason", ["model_name", "finished_reason"], registry=REGISTRY
)
UpstreamOutcome: TypeAlias = Literal["ok", "refused", "failed"]
UPSTREAM_TRIES = Counter(
    "tis_upstream_tries", "Requests to upstreams, by outcome", ["model_name", "outcome"], registry=REGISTRY
)
UPSTREAM_CONTINUED = Counter(
    "tis_upstream_continued",
    "Answers that went on at another upstream after their first token",
    _MODEL,
    registry=REGISTRY,
)
HEARD_SECONDS = TokenCounter("tis_heard_audio_seconds", "Sound that was transcribed", _MODEL)
SPOKEN_SECONDS = TokenCounter("tis_spoken_audio_seconds", "Sound that was made", _MODEL)
# Named as in other servers of embeddings, without our prefix.
EMBEDDING_HITS = Counter("embedding_cache_hits", "Texts whose vector was in the cache", _MODEL, registry=REGISTRY)
EMBEDDING_MISSES = Counter("embedding_cache_misses", "Texts whose vector was computed", _MODEL, registry=REGISTRY)
