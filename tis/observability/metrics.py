"""Prometheus metrics. The values of labels come from fixed sets, never from requests.

Names are those of vLLM with another prefix, where it has the metric: its dashboards work after a rename.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

REGISTRY = CollectorRegistry()

_WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_FIRST_TOKEN_BUCKETS = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120)
_TOKEN_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10)
_PAUSE_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


# The resources of admission, and what has a queue or a bound of its own.
RefusalReason: TypeAlias = Literal[
    "requests",
    "body_bytes",
    "media_bytes",
    "decoded_bytes",
    "image_decoders",
    "video_decoders",
    "card_readers",
    "sound_decoders",
    "heard_decoders",
    "sound_seconds",
    "prompt_tokens",
    "model_queue",
    "grammar_compilers",
    "fetches",
    "sessions",
]


class TokenCounter(Collector):
    """A counter without lock and labels, for what happens at every token. Only the event loop adds to it."""

    def __init__(self, name: str, documentation: str) -> None:
        self._name, self._documentation = name, documentation
        self.value = 0
        REGISTRY.register(self)

    def add(self, amount: int) -> None:
        self.value += amount

    def collect(self) -> Iterable[Metric]:
        return [CounterMetricFamily(self._name, self._documentation, self.value)]


class TokenHistogram(Collector):
    """A histogram of the same kind: it takes a fifth of the time of the library's."""

    def __init__(self, name: str, documentation: str, buckets: Sequence[float]) -> None:
        self._name, self._documentation, self._buckets = name, documentation, buckets
        self._counts = [0] * (len(buckets) + 1)
        self._sum = 0.0
        REGISTRY.register(self)

    @property
    def count(self) -> int:
        return sum(self._counts)

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(self._buckets, seconds)] += 1
        self._sum += seconds

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation)
        total, buckets = 0, []
        for bound, count in zip([*map(str, map(float, self._buckets)), "+Inf"], self._counts, strict=True):
            total += count
            buckets.append((bound, total))
        family.add_metric([], buckets, self._sum)
        return [family]


STORE_ERRORS = Counter(
    "tis_session_store_errors", "Failures of the store of sessions", ["store", "error"], registry=REGISTRY
)
SLOW_READERS_CUT = Counter("tis_slow_readers_cut", "Connections cut because the client read nothing", registry=REGISTRY)

TRANSPORT_REFUSALS = Counter(
    "tis_transport_refusals",
    "Requests and connections refused or closed for their headers, slowness or number",
    ["reason"],
    registry=REGISTRY,
)
_REFUSED = Counter("tis_admission_rejections", "Requests refused for want of room", ["reason"], registry=REGISTRY)
WAIT_SECONDS = Histogram(
    "tis_admission_wait_seconds",
    "Waits for room before a request is prepared",
    ["reason"],
    buckets=_WAIT_BUCKETS,
    registry=REGISTRY,
)
QUEUE_SECONDS = Histogram(
    "tis_request_queue_time_seconds", "Waits for the model", buckets=_WAIT_BUCKETS, registry=REGISTRY
)
FIRST_TOKEN_SECONDS = Histogram(
    "tis_time_to_first_token_seconds",
    "From the arrival of a request to its first token",
    buckets=_FIRST_TOKEN_BUCKETS,
    registry=REGISTRY,
)
INTER_TOKEN_SECONDS = TokenHistogram(
    "tis_inter_token_latency_seconds", "Between two steps of an answer with new tokens", _TOKEN_BUCKETS
)
PROMPT_TOKENS = Counter("tis_prompt_tokens", "Tokens of prompts", registry=REGISTRY)
CACHED_TOKENS = Counter("tis_prefix_cache_hits", "Tokens of prompts found in the KV cache", registry=REGISTRY)
CACHED_VECTORS = Counter(
    "tis_embedding_cache",
    "Texts whose vector was asked for, by whether the cache had it",
    ["result"],
    registry=REGISTRY,
)
MEANING_SEARCHES = Counter(
    "tis_marketplace_meaning_searches",
    "Searches with few matches that asked the embedding model, by what came of it",
    ["result"],
    registry=REGISTRY,
)
PREEMPTIONS = Counter("tis_num_preemptions", "Sequences that freed their KV cache for others", registry=REGISTRY)
DRAFT_TOKENS = Counter(
    "tis_spec_decode_num_draft_tokens", "Tokens that prompt lookup drafted and the model checked", registry=REGISTRY
)
ACCEPTED_DRAFT_TOKENS = Counter(
    "tis_spec_decode_num_accepted_tokens", "Drafted tokens that became tokens of answers", registry=REGISTRY
)
GENERATION_TOKENS = TokenCounter("tis_generation_tokens", "Tokens of answers")
LOOP_PAUSE_SECONDS = TokenHistogram(
    "tis_event_loop_lag_seconds", "How late the event loop runs a callback", _PAUSE_BUCKETS
)


def count_refusal(reason: RefusalReason) -> None:
    _REFUSED.labels(reason).inc()


def metrics_page(gauges: Callable[[], Iterable[Metric]] = tuple) -> bytes:
    """`gauges`: what is read of the parts of the app at this moment."""
    now = CollectorRegistry()
    now.register(_Gauges(gauges))
    return bytes(generate_latest(REGISTRY)) + bytes(generate_latest(now))


class _Gauges(Collector):
    def __init__(self, gauges: Callable[[], Iterable[Metric]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        return self._gauges()
