"""One choice of a request while the batch computes it: its tokens, and the cache blocks that hold them."""

import hashlib
from array import array
from collections.abc import Iterator
from collections.abc import Sequence as Listing

from tis.engine.batching.blocks import BlockRun
from tis.engine.batching.long_ropes import RopeBorder
from tis.engine.batching.lookup import Drafter
from tis.engine.batching.positions import MropePositions
from tis.engine.completion import Completion
from tis.engine.request import Request
from tis.engine.vision.vision_input import VisionInput


class Sequence:
    def __init__(
        self,
        request: Request,
        choice: Completion,
        arrival: int,
        leader: "Sequence | None" = None,
        positions: MropePositions | None = None,
        rope_border: RopeBorder | None = None,
        *,
        looks_ahead: bool = False,
        starts_whole: bool = False,
    ) -> None:
        self.request = request
        self.choice = choice
        self.arrival = arrival
        self.leader = leader  # the first choice of the same request: it computes the prompt for all
        self.positions = positions  # None: tokens are counted one by one
        # Tokens that attend to each other in both directions, and so are computed together.
        self.pictures = self._runs_of_pictures() if looks_ahead else ()
        self.starts_whole = starts_whole  # all tokens that it has when it starts are computed in one step
        self.num_computed = 0
        self.block_run: BlockRun | None = None
        self.state_slot: int | None = None  # where layers keep what they know of it
        self.is_suspect = False  # a step with it has failed
        self.num_cached_blocks = 0  # that other sequences can find
        self.was_started = False
        self.is_dropped = False
        self._drafter: Drafter | None = None
        self._hashes: list[bytes] = []
        self._rope_border = rope_border
        self._rope_factors = 1  # of its beginning: see RopeBorder
        salt = request.prepared.cache_salt.encode("utf-8", "surrogatepass")
        adapter = hashlib.blake2b(request.prepared.adapter.encode(), digest_size=16).digest()
        self._salt = hashlib.blake2b(salt, digest_size=16, person=adapter).digest()

    @property
    def vision_inputs(self) -> Listing[VisionInput]:
        vision = self.request.prepared.vision
        return vision.inputs if vision else ()

    def pictures_between(self, start: int, stop: int) -> tuple[tuple[int, int], ...]:
        return tuple((first, last) for first, last in self.pictures if start + 1 < last and first < stop)

    def end_of_chunk(self, start: int, stop: int) -> int:
        """Where a chunk may end that was to end before `stop`: before a picture, or behind one that it begins in."""
        for first, last in self.pictures:
            if first < stop < last:
                return first if start < first else last
        return stop

    @property
    def scores_prompt(self) -> bool:
        """The log probabilities of its prompt are wanted, so all of it is computed, whatever prefix is cached."""
        return self.choice.next_scored is not None

    @property
    def num_tokens(self) -> int:
        return len(self.choice.prompt_ids) + len(self.choice.token_ids)

    @property
    def num_uncomputed(self) -> int:
        """Tokens whose keys and values are not computed yet. The last of them gives the next token."""
        return self.num_tokens - self.num_computed

    @property
    def is_decoding(self) -> bool:
        return self.num_uncomputed == 1 and self.num_computed > 0

    @property
    def max_tokens(self) -> int:
        return len(self.choice.prompt_ids) + self.choice.params.max_tokens

    @property
    def waits_for_leader(self) -> bool:
        leader = self.leader
        return leader is not None and not leader.is_dropped and leader.num_computed < len(self.choice.prompt_ids)

    def tokens(self, start: int, stop: int) -> list[int]:
        prompt = self.choice.prompt_ids
        if stop <= len(prompt):
            return prompt[start:stop]
        generated = self.choice.token_ids
        return prompt[start:] + generated[max(0, start - len(prompt)) : stop - len(prompt)]

    @property
    def has_outgrown_its_keys(self) -> bool:
        return self._factors_now != self._rope_factors

    @property
    def max_draft(self) -> int:
        """One of more tokens would need other factors of the rotary embedding."""
        border = self._rope_border
        if border is None or not border.recomputes or self.num_tokens > border.length:
            return self.max_tokens
        return border.length - self.num_tokens

    def begin(self) -> None:
        """To be called before it is computed from its beginning."""
        if self.has_outgrown_its_keys:
            self._rope_factors = self._factors_now
            self._hashes = []

    def rope_factors(self, start: int, stop: int) -> list[int]:
        """Of these tokens: see RopeBorder.factors_of."""
        border = self._rope_border
        if border is None:
            return [1] * (stop - start)
        return [max(self._rope_factors, border.factors_of(at + 1)) for at in range(start, stop)]

    @property
    def _factors_now(self) -> int:
        border = self._rope_border
        if border is None:
            return 1
        return border.factors_of(self.num_tokens if border.recomputes else len(self.choice.prompt_ids))

    def draft(self, max_length: int) -> list[int]:
        """Tokens that may come next."""
        if max_length <= 0:
            return []
        if self._drafter is None:
            choice = self.choice
            self._drafter = Drafter(choice.prompt_ids, self.request.prepared.prediction_ids, choice.params.max_tokens)
        return self._drafter.draft(self.choice.token_ids, max_length)

    def hashes(self, num_blocks: int, block_size: int) -> list[bytes]:
        """Hashes the first full blocks.

        One covers the salt, the adapter, the factors of the rotary embedding, and all tokens and media up to its end.
        """
        while len(self._hashes) < num_blocks:
            at = len(self._hashes) * block_size
            before = self._hashes[-1] if self._hashes else self._salt + self._rope_factors.to_bytes(8, "big")
            ids = array("q", self.tokens(at, at + block_size)).tobytes()
            media = b"".join(self._media_digests(at, at + block_size))
            self._hashes.append(hashlib.blake2b(before + ids + media, digest_size=16).digest())
        return self._hashes[:num_blocks]

    def _runs_of_pictures(self) -> tuple[tuple[int, int], ...]:
        return tuple(span for vision_input in self.vision_inputs for span in vision_input.spans)

    def _media_digests(self, start: int, stop: int) -> Iterator[bytes]:
        for vision_input in self.vision_inputs:
            if any(first < stop and start < last for first, last in vision_input.spans):
                yield vision_input.digest
