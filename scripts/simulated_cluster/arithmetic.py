"""What a cluster of some size needs: closed formulas, from measured costs and assumptions that have names."""

from dataclasses import dataclass, field

from scripts.simulated_cluster.simulated_redis import RedisCosts

_MAX_ROUND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class MeasuredSizes:
    """Defaults: `benchmarks/redis_costs.py`, and `benchmarks/RESULTS.md` for the CPU of a stream over HTTP."""

    event_bytes: float = 335.0
    session_bytes: float = 7951.0
    file_bytes: float = 543.0  # of the append-only file, for an event in a script of its own
    network_bytes: float = 900.0  # to and from Redis, for an event in a script of its own
    store_cpu: float = 51e-6  # seconds of a server's CPU for an event: the store
    stream_cpu: float = 44e-6  # ... and the rest of the way to the client


@dataclass(frozen=True, slots=True)
class Assumptions:
    rate: float = 20.0  # tokens a second of an answer
    tokens: int = 1000  # of an answer
    ttl_seconds: float = 600.0  # SESSIONS_TTL_SECONDS
    followed: float = 0.1  # the share of streams that are read at another server than the one that makes them
    redis_bytes: float = 64e9  # of memory of one Redis
    max_busy: float = 0.6  # of one Redis
    connections_each: int = 3  # of a server to each Redis: writes, orders, and one for requests
    postgres_pool: int = 48  # a server's connections at most


@dataclass(frozen=True, slots=True)
class RedisRound:
    """What a Redis does, when each of so many servers always has one pipeline on its way."""

    seconds: float  # from one pipeline of a server to its next; inf: Redis cannot keep up
    busy: float
    events_per_script: float


def round_of(costs: RedisCosts, servers: int, sessions: float, rate: float, followed: float = 0.0) -> RedisRound:
    """`sessions`: those of one Redis."""
    script = costs.script + followed * 2 * costs.read
    further = costs.event
    pipelines = min(sessions * rate, servers / costs.round_trip)
    busy = pipelines * costs.pipeline + sessions * rate * script
    if busy < 1:
        return RedisRound(costs.round_trip, busy, 1.0)
    # No idle time: a round is as long as the work in it. At first a session has at most one token in a round.
    if sessions * rate * script < 1:
        seconds = max(costs.round_trip, servers * costs.pipeline / (1 - sessions * rate * script))
        if seconds * rate <= 1:
            return RedisRound(seconds, 1.0, 1.0)
    room = 1 - sessions * rate * further
    seconds = (servers * costs.pipeline + sessions * (script - further)) / room if room > 0 else float("inf")
    return RedisRound(seconds, 1.0, seconds * rate if seconds < _MAX_ROUND_SECONDS else float("inf"))


def max_sessions(
    costs: RedisCosts, servers: int, rate: float, followed: float, *, busy: float = 1.0, round_seconds: float = 0.0
) -> int:
    """How many sessions one Redis takes at this share of its time, or, where it has none left, at this round."""
    low, high = 0, 10**7
    while low < high:
        middle = (low + high + 1) // 2
        found = round_of(costs, servers, middle, rate, followed)
        if found.busy <= busy and found.seconds <= max(round_seconds, costs.round_trip):
            low = middle
        else:
            high = middle - 1
    return low


@dataclass(frozen=True, slots=True)
class Need:
    streams: int
    servers: int  # at least
    memory_bytes: float  # of all Redis
    events_per_second: float
    shards_for_cpu: int  # with an answer of Redis for each token
    shards_for_cpu_late: int  # where a round may take a quarter of a second
    shards_for_memory: int
    network_bytes: float  # a second
    file_bytes: float  # a second
    redis_connections: float  # of each Redis
    takeover_seconds: float  # of CPU of each Redis after the kill of a server, at most
    postgres_connections: int


@dataclass(frozen=True, slots=True)
class ScaleArithmetic:
    costs: RedisCosts = field(default_factory=RedisCosts)
    sizes: MeasuredSizes = field(default_factory=MeasuredSizes)
    assumed: Assumptions = field(default_factory=Assumptions)

    @property
    def streams_of_a_server(self) -> int:
        """One process: its event loop has one core."""
        return int(1 / (self.assumed.rate * (self.sizes.store_cpu + self.sizes.stream_cpu)))

    def need(self, streams: int, servers: int) -> Need:
        assumed, sizes = self.assumed, self.sizes
        servers = max(servers, -(-streams // self.streams_of_a_server))
        events = streams * assumed.rate
        answer_bytes = sizes.session_bytes + assumed.tokens * sizes.event_bytes
        finished = events / assumed.tokens * assumed.ttl_seconds
        running_bytes = streams * (sizes.session_bytes + assumed.tokens / 2 * sizes.event_bytes)
        memory = finished * answer_bytes + running_bytes
        # A server has at least a pipeline for each Redis, so what a Redis takes depends on how many servers there are.
        direct = max_sessions(self.costs, servers, assumed.rate, assumed.followed, busy=assumed.max_busy)
        late = max_sessions(self.costs, servers, assumed.rate, assumed.followed, round_seconds=0.25)
        shards = max(1, -(-streams // max(1, direct)))
        connections = servers * assumed.connections_each + streams * assumed.followed / shards
        return Need(
            streams,
            servers,
            memory,
            events,
            shards,
            max(1, -(-streams // max(1, late))),
            max(1, -(-int(memory) // int(assumed.redis_bytes))),
            events * sizes.network_bytes,
            events * sizes.file_bytes,
            connections,
            # Every server asks for up to 64 sessions of the dead one, with up to four commands for each.
            servers * (1 + 4 * min(64, -(-streams // servers // shards))) * self.costs.command,
            servers * assumed.postgres_pool,
        )
