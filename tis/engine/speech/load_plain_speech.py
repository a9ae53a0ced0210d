"""Loads a model that transcribes and is no Whisper, to be computed by its own code."""

import weakref
from functools import partial
from pathlib import Path
from typing import Any

from tis.engine.errors import LoadFailed
from tis.engine.models.description import weights_bytes_of, weights_time_of
from tis.engine.models.load_progress import Report, reporting_weights
from tis.engine.models.loading import LoadOptions, device_name
from tis.engine.models.model_status import ModelFootprint
from tis.engine.models.revision import revision_of
from tis.engine.one_by_one_runner import ForwardPasses
from tis.engine.speech.heard import HearingOptions, SpeechDescription
from tis.engine.speech.loaded_speech import LoadedSpeech
from tis.engine.speech.speech_request import PreparedWindow
from tis.errors import BadRequest

_WINDOW_SECONDS = 30.0
_MAX_TOKENS = 448  # of a window, as a Whisper has


def load_plain_speech(folder: Path, config: Any, options: LoadOptions, report: Report) -> LoadedSpeech:
    """`config`: that of the model. Raises LoadFailed for one that does not transcribe."""
    import transformers

    from tis.engine.speech.plain_hearing import CtcListener, MoonshineListener, PlainHearingRunner, PlainText

    is_ctc = any(str(name).endswith("ForCTC") for name in config.architectures or ())
    if not is_ctc and config.model_type != "moonshine":
        raise LoadFailed(
            f"A model of type {config.model_type!r} is not served for transcription: use a Whisper, a Moonshine or a "
            "model that ends with ForCTC."
        )
    try:
        extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    except ImportError as error:
        raise LoadFailed(f"A model of type {config.model_type!r} needs a library that is not installed.") from error
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    report("reading the weights", None)
    model_class = transformers.AutoModelForCTC if is_ctc else transformers.MoonshineForConditionalGeneration
    with reporting_weights(lambda share: report("reading the weights", share)):
        model = model_class.from_pretrained(
            folder, dtype=options.dtype, device_map=options.device_map, use_safetensors=True
        ).eval()
    if model.device.type == "cpu":
        model = model.float()
    rate = int(extractor.sampling_rate)
    listener = (CtcListener if is_ctc else MoonshineListener)(model, tokenizer, rate)

    def features(samples: Any) -> dict[str, Any]:
        made = extractor(samples, sampling_rate=rate, return_tensors="pt")
        return {name: value.to(model.dtype) if value.is_floating_point() else value for name, value in made.items()}

    return LoadedSpeech(
        new_runner=partial(PlainHearingRunner, listener, ForwardPasses([model]), model.device),
        context_length=_MAX_TOKENS,
        revision=revision_of(folder),
        weights_time=weights_time_of(folder),
        weights_bytes=weights_bytes_of(folder),
        footprint=ModelFootprint(
            device=device_name(model.device),
            dtype=str(model.dtype).removeprefix("torch."),
            weight_bytes=int(model.get_memory_footprint()),
            cache_tokens=0,
            cache_bytes=0,
        ),
        weights=weakref.ref(model),
        warm_up=partial(_warm_up, features, rate),
        description=SpeechDescription(
            sample_rate=rate,
            window_seconds=_WINDOW_SECONDS,
            languages={},
            tasks=frozenset({"transcribe"}),
            has_times=False,
            has_words=is_ctc,
        ),
        features=features,
        check=_refuse_translation,
        text=PlainText(rate),
        num_prompt_tokens=0,
    )


def _refuse_translation(options: HearingOptions) -> None:
    if options.task == "translate":
        raise BadRequest("This model does not translate: it writes what it hears.", param="model")


def _warm_up(features: Any, rate: int, runner: Any) -> None:
    import numpy as np

    noise = np.random.default_rng(0).normal(0, 0.1, rate).astype(np.float32)
    runner.heard(PreparedWindow(features(noise), b"", len(noise), HearingOptions()))
