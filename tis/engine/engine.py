"""What the HTTP APIs need of an engine: prepare a prompt, submit it, read the answer, resume it."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol, TypeVar

from tis.admission.ticket import Ticket
from tis.engine.answer import Answer
from tis.engine.grammar.grammar import Grammar
from tis.engine.models.catalogue import CatalogueEntry
from tis.engine.models.description import ModelDescription
from tis.engine.models.model_status import ModelStatus
from tis.engine.pooling.loaded_pooling import EmbeddingOptions, Embeddings, PairScores
from tis.engine.pooling.token_row import Text
from tis.engine.prepared_request import PreparedRequest
from tis.engine.prompt import ChatPrompt, Medium, MediumKind, RawPrompt
from tis.engine.resumable_request import EmittedTokens, ResumableRequest
from tis.engine.sampling.params import SamplingParams
from tis.engine.speech.heard import HeardWindow, SpeechDescription, SpeechWindow
from tis.engine.text.tokenizer import RawTokenizer, TextCodec
from tis.engine.voice.spoken import CutText, SentenceToSay, VoiceDescription

T = TypeVar("T")


class Engine(Protocol):
    """Answers prompts, on this machine or elsewhere."""

    @property
    def models(self) -> Sequence[CatalogueEntry]: ...

    @property
    def statuses(self) -> Sequence[ModelStatus]: ...

    @property
    def opened_at(self) -> float: ...

    @property
    def is_draining(self) -> bool:
        """Whether new requests are refused with Draining, before the process ends."""
        ...

    @property
    def loss(self) -> str | None:
        """Why no model can compute here any more; None if all is well. The process ends then."""
        ...

    @property
    def is_starting(self) -> bool:
        """Whether models that are loaded at start are not all there yet."""
        ...

    async def until_draining(self) -> None: ...

    async def describe(self, model_id: str) -> ModelDescription:
        """What is known of a model. Does not load it."""
        ...

    def default_sampling(self, model_id: str) -> SamplingParams:
        """What a request gets that sets nothing; before a model is loaded, without its own recommendations."""
        ...

    def watch_load(self, model_id: str) -> AsyncGenerator[ModelStatus, None]:
        """Loads a model unless it is loaded, and yields every change until it is `ready`.

        Raises what the load raises. Who stops reading does not stop the load.
        """
        ...

    async def unload(self, model_id: str) -> ModelStatus:
        """Frees the memory of a model; the next request loads it again. Raises ModelInUse."""
        ...

    async def media_kinds(self, model_id: str) -> Collection[MediumKind]:
        """The kinds of media that a model takes. Waits until it is loaded."""
        ...

    async def template_variables(self, model_id: str) -> AbstractSet[str]:
        """The variables that the model's chat template takes from a request. Waits until it is loaded."""
        ...

    async def prepare(
        self,
        model_id: str,
        prompt: ChatPrompt,
        sampling: Mapping[str, Any],
        grammar: Grammar | None = None,
        *,
        is_resumed: bool = False,
        cache_salt: str = "",
        ticket: Ticket | None = None,
    ) -> PreparedRequest:
        """Tokenises and checks a request. Whatever can be refused is refused here, before the answer begins.

        `cache_salt`: the request shares cached prefixes only with requests of the same salt. It names whose they are.

        `ticket`: with it a grammar waits its turn; without, it goes first.

        `is_resumed`: the request continues an answer that was accepted before, so it goes before new ones, and is
        accepted while draining.
        """
        ...

    async def prepare_raw(
        self,
        model_id: str,
        prompts: Sequence[RawPrompt],
        sampling: Mapping[str, Any],
        grammar: Grammar | None = None,
        *,
        prompt_logprobs: int | None = None,
        prompt_only: bool = False,
        cache_salt: str = "",
        ticket: Ticket | None = None,
    ) -> list[PreparedRequest]:
        """The same of prompts without a chat template, which one answer has the choices of: for `submit_list`.

        `prompt_logprobs`: the log probabilities of the prompts are wanted, with so many alternatives to each token.

        `prompt_only`: nothing behind the prompts is wanted, so one may fill the context.
        """
        ...

    def submit(
        self, prepared: PreparedRequest, *, is_resumed: bool = False, ticket: Ticket | None = None
    ) -> Answer: ...

    def submit_list(self, prepared: Sequence[PreparedRequest], *, ticket: Ticket | None = None) -> Answer:
        """The choices of the second prompt are numbered behind those of the first, and so on."""
        ...

    async def with_tokenizer(self, model_id: str, work: Callable[[RawTokenizer], T]) -> T:
        """Calls this in a thread, with the tokenizer of a model that writes text. Waits until it is loaded."""
        ...

    async def with_codec(self, model_id: str, work: Callable[[TextCodec], T]) -> T:
        """The same with a model of any task. Raises BadRequest for one that has no tokens."""
        ...

    async def embed(
        self, model_id: str, texts: Sequence[Text], options: EmbeddingOptions, ticket: Ticket | None = None
    ) -> Embeddings:
        """One vector for each text. Raises WrongTask for a model that makes none."""
        ...

    async def score(
        self,
        model_id: str,
        pairs: Sequence[tuple[str, str]],
        instruction: str | None = None,
        *,
        truncate: bool = False,
        ticket: Ticket | None = None,
    ) -> PairScores:
        """How well the second text of each pair answers the first, mostly from 0 to 1."""
        ...

    async def describe_speech(self, model_id: str) -> SpeechDescription:
        """What a model that hears can do. Waits until it is loaded. Raises WrongTask for a model that does not hear."""
        ...

    async def detect_language(
        self, model_id: str, samples: Any, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> str | None:
        """The code of the language that is spoken in a window; None if the model tells none apart."""
        ...

    async def hear(
        self, model_id: str, window: SpeechWindow, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> HeardWindow:
        """What is said in a window, the same alone and in company. Several may be asked for at once: they share steps.

        Who is cancelled while it waits frees its place. Raises QueueFull, unless the file `is_begun`: a few windows of
        it wait at most.
        """
        ...

    async def describe_voice(self, model_id: str) -> VoiceDescription:
        """What a model that speaks can do. Waits until it is loaded. Raises WrongTask for a model that does not."""
        ...

    async def cut_text(self, model_id: str, text: str, pace: float = 1.0) -> CutText:
        """The sentences that a model says one after the other. Raises BadRequest if it can say nothing of the text."""
        ...

    async def say(
        self, model_id: str, sentence: SentenceToSay, ticket: Ticket | None = None, *, is_begun: bool = False
    ) -> Any:
        """Samples of one channel: float32 in numpy, from -1 to 1. Who is cancelled while it waits frees its place.

        Raises QueueFull, unless the text `is_begun`: there are two sentences of it at most.
        """
        ...

    async def resume(
        self,
        saved: ResumableRequest,
        emitted: Sequence[EmittedTokens],
        media: Sequence[Medium] = (),
        ticket: Ticket | None = None,
    ) -> Answer:
        """Resumes an answer that another process began; its pieces continue behind the emitted tokens.

        Raises Unavailable if a retry may succeed, GenerationInterrupted if the answer can never be resumed here.
        """
        ...

    async def resume_list(
        self, saved: Sequence[ResumableRequest], emitted: Sequence[EmittedTokens], ticket: Ticket | None = None
    ) -> Answer:
        """The same of a list of prompts. `emitted`: of the choices of all."""
        ...
