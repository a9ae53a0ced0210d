"""Makes text and times of the tokens of a window. Runs in a pool: the words of one take a tenth of a second."""

from collections.abc import Sequence
from dataclasses import dataclass

from tis.engine.speech.attempt import compression_ratio
from tis.engine.speech.heard import HeardSegment, HeardToken, HeardWindow, HeardWord
from tis.engine.speech.segments import SegmentSpan, spans_of
from tis.engine.speech.speech_request import PreparedWindow, WindowTokens
from tis.engine.speech.whisper_vocabulary import WhisperVocabulary
from tis.engine.speech.words import split_words, timed_words, token_times


@dataclass(frozen=True, slots=True)
class TranscriptMaker:
    vocabulary: WhisperVocabulary
    sample_rate: int
    precision: float  # seconds, of a time and of a frame behind the encoder

    def heard(self, made: WindowTokens, window: PreparedWindow) -> HeardWindow:
        seconds = window.num_samples / self.sample_rate
        spans = spans_of(made.tokens, self.vocabulary, seconds, self.precision)
        text = "".join(self._text_of(span, made) for span in spans)
        times = self._times(made, seconds)
        segments = []
        num_before = 0  # text tokens of the segments before
        for span in spans:
            ids = made.tokens[span.first : span.last]
            num_text = sum(map(self.vocabulary.is_text, ids))
            words = self._words(span, made, times[num_before:]) if times else []
            num_before += num_text
            segments.append(
                HeardSegment(
                    start=span.start,
                    end=span.end,
                    text=self._text_of(span, made),
                    token_ids=ids,
                    temperature=made.temperature,
                    avg_logprob=made.avg_logprob,
                    compression_ratio=compression_ratio(text),
                    no_speech_prob=made.no_speech_prob,
                    words=tuple(words),
                    tokens=tuple(self._tokens(span, made)) if window.options.with_logprobs else (),
                )
            )
        return HeardWindow(made.language, tuple(segments), made.num_tokens)

    def _text_of(self, span: SegmentSpan, made: WindowTokens) -> str:
        return self.vocabulary.text_of(made.tokens[span.first : span.last])

    def _times(self, made: WindowTokens, seconds: float) -> Sequence[float]:
        """When each text token begins, and the end; empty where no words are wanted."""
        if made.alignment is None:
            return ()
        num_text = min(sum(map(self.vocabulary.is_text, made.tokens)), made.alignment.shape[1] - 2)
        return token_times(made.alignment[:, -num_text - 2 : -1], int(seconds / self.precision), self.precision)

    def _words(self, span: SegmentSpan, made: WindowTokens, times: Sequence[float]) -> list[HeardWord]:
        places = [place for place in range(span.first, span.last) if self.vocabulary.is_text(made.tokens[place])]
        words = split_words([made.tokens[place] for place in places], self.vocabulary, made.language)
        logprobs = [made.logprobs[place] for place in places]
        return timed_words(words, times, logprobs, (span.start, span.end)) if times else []

    def _tokens(self, span: SegmentSpan, made: WindowTokens) -> list[HeardToken]:
        places = [place for place in range(span.first, span.last) if self.vocabulary.is_text(made.tokens[place])]
        ids = [made.tokens[place] for place in places]
        return [
            HeardToken(text, self.vocabulary.bytes_of(token_id), made.logprobs[place])
            for place, token_id, text in zip(places, ids, self.vocabulary.texts_of(ids), strict=True)
        ]
