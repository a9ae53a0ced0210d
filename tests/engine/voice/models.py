"""Tiny models that speak, with random weights: built, saved, and read again by `from_pretrained`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

LETTERS = "abcdefghijklmnopqrstuvwxyz ,.-'"
SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "ffn_dim": 32,
    "flow_size": 16,
    "spectrogram_bins": 17,
    "duration_predictor_filter_channels": 16,
    "prior_encoder_num_flows": 2,
    "prior_encoder_num_wavenet_layers": 1,
    "posterior_encoder_num_wavenet_layers": 1,
    "duration_predictor_num_flows": 2,
    "depth_separable_num_layers": 1,
    "upsample_initial_channel": 32,
    "upsample_rates": [8, 8, 4],
    "upsample_kernel_sizes": [16, 16, 8],
    "resblock_kernel_sizes": [3],
    "resblock_dilation_sizes": [[1, 3]],
}


def save_vits(folder: Path, speakers: int = 1, **fields: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({"_": 0, **{one: at for at, one in enumerate(LETTERS, 1)}}))
    tokenizer = transformers.VitsTokenizer(
        str(folder / "vocab.json"), pad_token="_", language="ind", normalize=True, phonemize=False
    )
    tokenizer.save_pretrained(folder)
    config = transformers.VitsConfig(
        vocab_size=len(LETTERS) + 1,
        num_speakers=speakers,
        speaker_embedding_size=8 if speakers > 1 else 0,
        **{**SMALL, **fields},
    )
    torch.manual_seed(0)
    model = transformers.VitsModel(config)
    if not config.use_stochastic_duration_prediction:
        model.duration_predictor.proj.weight.data.mul_(0.1)
        model.duration_predictor.proj.bias.data.fill_(0.3)  # two frames for a character, as in slow speech
    model.save_pretrained(folder)
    return folder


def letters_tokenizer(folder: Path, **fields: Any) -> None:
    """A token for each letter, in a file that needs no SentencePiece."""
    from tokenizers import Tokenizer, pre_tokenizers
    from tokenizers.models import WordLevel

    marks = ["<pad>", "<unk>", "<s>", "</s>"]
    vocabulary = {one: at for at, one in enumerate([*marks, *LETTERS, *"[]0123"])}
    made = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", bos_token="<s>", eos_token="</s>", **fields
    ).save_pretrained(folder)


def save_speecht5(folder: Path) -> Path:
    """With its vocoder and the embedding of a speaker in folders of their own."""
    letters_tokenizer(folder)
    torch.manual_seed(0)
    config = transformers.SpeechT5Config(
        vocab_size=64,
        hidden_size=16,
        encoder_layers=1,
        encoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_layers=1,
        decoder_attention_heads=2,
        decoder_ffn_dim=32,
        num_mel_bins=20,
        speaker_embedding_dim=8,
        speech_decoder_prenet_units=16,
        speech_decoder_postnet_units=16,
        speech_decoder_postnet_layers=2,
        pad_token_id=0,
    )
    model = transformers.SpeechT5ForTextToSpeech(config)
    model.speech_decoder_postnet.prob_out.bias.data.fill_(-3)  # else it ends at once
    model.save_pretrained(folder)
    vocoder_config = transformers.SpeechT5HifiGanConfig(
        model_in_dim=20,
        upsample_initial_channel=32,
        upsample_rates=[8, 8, 4],
        upsample_kernel_sizes=[16, 16, 8],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
    )
    vocoder = transformers.SpeechT5HifiGan(vocoder_config)
    for weights in vocoder.parameters():
        weights.data.normal_(0, 0.2)
    vocoder.save_pretrained(folder / "vocoder")
    for number, name in enumerate(("ani", "budi")):
        np.save(folder / f"{name}.npy", np.random.default_rng(number).normal(size=8).astype(np.float32))
    return folder


def save_bark(folder: Path) -> Path:
    """With a preset of a speaker."""
    letters_tokenizer(folder)
    torch.manual_seed(0)
    tiny = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "block_size": 1024}
    codec = transformers.EncodecConfig(num_filters=4, hidden_size=16, codebook_dim=16, target_bandwidths=[6.0])
    config = transformers.BarkConfig(
        semantic_config={**tiny, "input_vocab_size": 129_600, "output_vocab_size": 10_048},
        coarse_acoustics_config={**tiny, "input_vocab_size": 12_096, "output_vocab_size": 12_096},
        fine_acoustics_config={**tiny, "input_vocab_size": 1_056, "output_vocab_size": 1_056},
        codec_config=codec.to_dict(),
    )
    model = transformers.BarkModel(config)
    for layer in model.codec_model.quantizer.layers:
        layer.codebook.embed.normal_()  # else all codes sound the same
    model.generation_config = transformers.GenerationConfig(
        semantic_config={"max_new_tokens": 12, "do_sample": True},
        coarse_acoustics_config={"do_sample": True},
        fine_acoustics_config={"temperature": 0.5},
        sample_rate=24_000,
        codebook_size=1024,
    )
    model.save_pretrained(folder)
    draw = np.random.default_rng(1)
    shapes = {"semantic_prompt": (9,), "coarse_prompt": (2, 13), "fine_prompt": (8, 13)}
    for part, shape in shapes.items():
        np.save(folder / f"{part}.npy", draw.integers(0, 1000, shape))
    paths = {"v2/id": {part: f"{part}.npy" for part in shapes}}
    (folder / "speaker_embeddings_path.json").write_text(json.dumps(paths))
    return folder


def save_csm(folder: Path) -> Path:
    letters_tokenizer(folder)
    torch.manual_seed(0)
    tiny = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "num_codebooks": 4,
        "vocab_size": 67,
    }
    codec = transformers.MimiConfig(
        num_filters=4,
        hidden_size=16,
        codebook_size=128,
        codebook_dim=8,
        vector_quantization_hidden_dimension=8,
        num_quantizers=4,
        upsample_groups=16,
        num_hidden_layers=1,
        intermediate_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    config = transformers.CsmConfig(
        **tiny,
        text_vocab_size=64,
        codebook_pad_token_id=66,
        codebook_eos_token_id=0,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=None,
        audio_token_id=62,
        audio_eos_token_id=63,
        depth_decoder_config={**tiny, "backbone_hidden_size": 16, "max_position_embeddings": 5},
        codec_config=codec.to_dict(),
    )
    model = transformers.CsmForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True, depth_decoder_do_sample=True, max_new_tokens=9, pad_token_id=66, eos_token_id=None
    )
    model.save_pretrained(folder)
    return folder


def save_dia(folder: Path) -> Path:
    """With its codec in a folder of its own."""
    transformers.DiaTokenizer().save_pretrained(folder)
    torch.manual_seed(0)
    tiny = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
    }
    decoder = {
        **tiny,
        "cross_num_attention_heads": 2,
        "cross_num_key_value_heads": 1,
        "cross_head_dim": 8,
        "cross_hidden_size": 16,
    }
    config = transformers.DiaConfig(encoder_config=tiny, decoder_config=decoder)
    model = transformers.DiaForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        do_sample=True, bos_token_id=1026, eos_token_id=1024, pad_token_id=1025, guidance_scale=3.0, top_k=45
    )
    model.save_pretrained(folder)
    codec = transformers.DacConfig(
        encoder_hidden_size=4, decoder_hidden_size=32, n_codebooks=9, downsampling_ratios=[2, 4, 8, 8]
    )
    transformers.DacModel(codec).save_pretrained(folder / "codec")
    return folder
