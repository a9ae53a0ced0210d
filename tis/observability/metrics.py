"""Prometheus metrics. The values of labels come from fixed sets, never from requests.

Names are those of vLLM with another prefix, where it has the metric: its dashboards work after a rename.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

REGISTRY = CollectorRegistry()

_WAIT_BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
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
    """A counter without a lock, for what happens at every token. Only the event loop adds to it."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str] = ()) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0}
        REGISTRY.register(self)

    def add(self, amount: float, *labels: str) -> None:
        self._values[labels] = self._values.get(labels, 0) + amount

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, value in list(self._values.items()):
            family.add_metric(labels, value)
        return [family]


class TokenHistogram(Collector):
    """A histogram of the same kind: it takes a fifth of the time of the library's."""

    def __init__(self, name: str, documentation: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> None:
        self._name, self._documentation, self._buckets, self._labels = name, documentation, buckets, labels
        self._counts: dict[tuple[str, ...], list[int]] = {} if labels else {(): self._no_counts()}
        self._sums: dict[tuple[str, ...], float] = {}
        REGISTRY.register(self)

    @property
    def count(self) -> int:
        return sum(map(sum, self._counts.values()))

    def observe(self, seconds: float, *labels: str) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = self._no_counts()
        counts[bisect_left(self._buckets, seconds)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + seconds

    def _no_counts(self) -> list[int]:
        return [0] * (len(self._buckets) + 1)

    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for labels, counts in list(self._counts.items()):
            total, buckets = 0, []
            for bound, count in zip([*map(str, map(float, self._buckets)), "+Inf"], counts, strict=True):
                total += count
                buckets.append((bound, total))
            family.add_metric(labels, buckets, self._sums.get(labels, 0.0))
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
    "tis_spec_decode_num_draft_tokens",
    "Tokens that were drafted and the model checked, by what drafted them",
    ["source"],
    registry=REGISTRY,
)
ACCEPTED_DRAFT_TOKENS = Counter(
    "tis_spec_decode_num_accepted_tokens",
    "Drafted tokens that became tokens of answers, by what drafted them",
    ["source"],
    registry=REGISTRY,
)
SESSION_EVENTS = TokenCounter("tis_session_events", "Events that were recorded")
MEDIA_REFUSALS = Counter(
    "tis_media_rejected", "Images, videos and sounds that were refused, by error code", ["reason"], registry=REGISTRY
)
ASSISTANT_TURNS = Counter(
    "tis_assistant_turns", "Turns of the shopping assistant, by outcome", ["outcome"], registry=REGISTRY
)
ASSISTANT_SECONDS = Histogram(
    "tis_assistant_turn_seconds",
    "Of a turn of the assistant that finished, in this process",
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    registry=REGISTRY,
)
WORKER_DEATHS = Counter(
    "tis_engine_restarts", "Workers of a model that died and were replaced", ["model_name"], registry=REGISTRY
)
HTTP_REQUESTS = Counter(
    "tis_http_requests", "Requests, by the template of their route", ["route", "method", "status"], registry=REGISTRY
)
HTTP_SECONDS = Histogram(
    "tis_http_request_duration_seconds",
    "From the head of a request to the end of its response",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300),
    registry=REGISTRY,
)
LOOP_PAUSE_SECONDS = TokenHistogram(
    "tis_event_loop_lag_seconds", "How late the event loop runs a callback", _PAUSE_BUCKETS
)


for _reason in get_args(RefusalReason):  # from 0 on, as the first step of a series that begins at 1 is seen by no rate
    _REFUSED.labels(_reason)
for _source in ("prompt_lookup", "draft_model"):
    DRAFT_TOKENS.labels(_source)
    ACCEPTED_DRAFT_TOKENS.labels(_source)


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
