"""Tiny vision models of random weights of Transformers' families, and pictures as official processors prepare them.

Made by hand, as several of these processors need torchvision: what a processor gives is pixels and a run of tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import transformers

from tests.engine.batching import letters
from tests.engine.batching.tiny import _SMALL, new_request, prompt
from tis.engine.request import Request
from tis.engine.vision.vision_input import PictureSample, PreprocessedMedia, ShownPictures, VisionInput

IMAGE, BREAK, END = 310, 311, 312
_TEXT = {**_SMALL, "head_dim": 16, "max_position_embeddings": 2048}
_VISION = {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2, "image_size": 32,
    "patch_size": 8,
}  # fmt: skip
_MROPE = {"rope_parameters": {"rope_type": "default", "mrope_section": [4, 2, 2], "rope_theta": 10000.0}}

Pixels = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class VisionFamily:
    config: Callable[[], Any]
    tokens: Callable[[int], list[int]]  # of a picture of a size from 1 to 3
    pixels: Callable[[int, torch.Generator], Pixels]
    joined_at: int = 0  # the axis along which the pixels of several pictures are joined
    token_types: str | None = None


def _noise(*shape: int) -> Callable[[int, torch.Generator], Pixels]:
    return lambda size, generator: {"pixel_values": torch.randn(shape, generator=generator)}


def _tiles(size: int, generator: torch.Generator) -> Pixels:
    return {"pixel_values": torch.randn(size, 3, 32, 32, generator=generator)}


def _of(kind: str, of_text: str, of_vision: str, **more: Any) -> Callable[[], Any]:
    more_text, more_vision = more.pop("text", {}), more.pop("vision", {})
    return lambda: getattr(transformers, f"{kind}Config")(
        text_config={**_TEXT, "model_type": of_text, **more_text},
        vision_config={**_VISION, "model_type": of_vision, **more_vision},
        **{"image_token_id": IMAGE, "tie_word_embeddings": False} | more,
    )


def _run(number: int) -> Callable[[int], list[int]]:
    return lambda size: [IMAGE] * number


def _run_of_tiles(number: int) -> Callable[[int], list[int]]:
    return lambda size: [IMAGE] * (number * size)


def _pixtral(size: int, generator: torch.Generator) -> Pixels:
    pixels = torch.zeros(1, 3, 48, 48)  # the processor pads to the largest
    pixels[..., : 16 * size, :32] = torch.randn(1, 3, 16 * size, 32, generator=generator)
    return {"pixel_values": pixels, "image_sizes": torch.tensor([[16 * size, 32]])}


def _pixtral_tokens(size: int) -> list[int]:
    return ([IMAGE] * 2 + [BREAK]) * (size - 1) + [IMAGE] * 2 + [END]


_NEXT = {1: ((30, 30), 2), 2: ((28, 60), 3), 3: ((64, 32), 3)}  # sizes of pictures, and their tiles


def _llava_next(size: int, generator: torch.Generator) -> Pixels:
    shape, num_tiles = _NEXT[size]
    pixels = torch.zeros(1, 3, 3, 32, 32)
    pixels[:, :num_tiles] = torch.randn(1, num_tiles, 3, 32, 32, generator=generator)
    return {"pixel_values": pixels, "image_sizes": torch.tensor([shape])}


def _next_tokens(size: int) -> list[int]:
    return [IMAGE] * {1: 16 + 4 * 5, 2: 16 + 4 * 9, 3: 16 + 8 * 5}[size]


def _glm(size: int, generator: torch.Generator) -> Pixels:
    rows = 2 * size
    return {
        "pixel_values": torch.randn(rows * 4, 3 * 2 * 8 * 8, generator=generator),
        "image_grid_thw": torch.tensor([[1, rows, 4]]),
    }


def _paddle(size: int, generator: torch.Generator) -> Pixels:
    patches = torch.randn(8 * size, 3, 8, 8, generator=generator)
    return {"pixel_values": patches, "image_grid_thw": torch.tensor([[1, 2 * size, 4]])}


def _glm4v() -> Any:
    return transformers.Glm4vConfig(
        text_config={**_TEXT, **_MROPE, "partial_rotary_factor": 1.0},
        vision_config={
            "depth": 3, "hidden_size": 32, "num_heads": 2, "out_hidden_size": 64, "intermediate_size": 32,
            "patch_size": 8, "image_size": 32,
        },
        image_token_id=IMAGE,
        image_start_token_id=BREAK,
        image_end_token_id=END,
    )  # fmt: skip


def _idefics(size: int, generator: torch.Generator) -> Pixels:
    return {
        "pixel_values": torch.randn(1, size, 3, 32, 32, generator=generator),
        "pixel_attention_mask": torch.ones(1, size, 32, 32, dtype=torch.int64),
    }


def _tiles_with_rows(number: int) -> Callable[[int], list[int]]:
    return lambda size: [token for _ in range(size) for token in [BREAK, *[IMAGE] * number]]


VISION_FAMILIES: dict[str, VisionFamily] = {
    "gemma3": VisionFamily(
        _of(
            "Gemma3",
            "gemma3_text",
            "siglip_vision_model",
            mm_tokens_per_image=4,
            text={"sliding_window": 12, "num_hidden_layers": 6, "query_pre_attn_scalar": 24},
        ),
        lambda size: [BREAK, *[IMAGE] * 4, END],
        _noise(1, 3, 32, 32),
        token_types="token_type_ids",
    ),
    "llava": VisionFamily(_of("Llava", "llama", "clip_vision_model"), _run(16), _noise(1, 3, 32, 32)),
    "llava layers": VisionFamily(
        _of("Llava", "llama", "clip_vision_model", vision_feature_layer=[-1, -2]), _run(16), _noise(1, 3, 32, 32)
    ),
    "vipllava": VisionFamily(
        _of("VipLlava", "llama", "clip_vision_model", vision_feature_layers=[-1, -2, 1]), _run(16), _noise(1, 3, 32, 32)
    ),
    "llava_next": VisionFamily(
        _of(
            "LlavaNext",
            "mistral",
            "clip_vision_model",
            image_grid_pinpoints=[[32, 32], [32, 64], [64, 32]],
            text={"sliding_window": None},
        ),
        _next_tokens,
        _llava_next,
    ),
    "mistral3": VisionFamily(
        _of(
            "Mistral3",
            "mistral",
            "pixtral",
            spatial_merge_size=2,
            text={"sliding_window": None},
            vision={"head_dim": 16},
        ),
        _pixtral_tokens,
        _pixtral,
    ),
    "internvl": VisionFamily(
        _of(
            "InternVL",
            "qwen2",
            "internvl_vision",
            vision={"image_size": [32, 32], "patch_size": [8, 8]},
            vision_feature_select_strategy="default",
        ),
        _run_of_tiles(4),
        _tiles,
    ),
    "aya_vision": VisionFamily(
        _of("AyaVision", "cohere2", "siglip_vision_model", downsample_factor=2, text={"sliding_window": 12}),
        _tiles_with_rows(4),
        _tiles,
    ),
    "cohere2_vision": VisionFamily(
        _of("Cohere2Vision", "cohere2", "siglip_vision_model", text={"sliding_window": 12}),
        _tiles_with_rows(4),
        _tiles,
    ),
    "idefics2": VisionFamily(
        _of(
            "Idefics2",
            "mistral",
            "idefics2_vision",
            text={"sliding_window": None},
            perceiver_config={
                "resampler_n_latents": 4,
                "resampler_depth": 2,
                "resampler_n_heads": 2,
                "resampler_head_dim": 16,
                "num_key_value_heads": 1,
            },
        ),
        _run_of_tiles(4),
        _idefics,
        joined_at=1,
    ),
    "idefics3": VisionFamily(
        _of("Idefics3", "llama", "idefics3_vision", scale_factor=2), _tiles_with_rows(4), _idefics, joined_at=1
    ),
    "smolvlm": VisionFamily(
        _of("SmolVLM", "llama", "smolvlm_vision", scale_factor=2), _tiles_with_rows(4), _idefics, joined_at=1
    ),
    "paligemma": VisionFamily(
        _of("PaliGemma", "gemma", "siglip_vision_model", projection_dim=64, vision={"vision_use_head": False}),
        _run(16),
        _noise(1, 3, 32, 32),
        token_types="token_type_ids",
    ),
    "got_ocr2": VisionFamily(
        _of(
            "GotOcr2",
            "qwen2",
            "got_ocr2_vision",
            vision={
                "image_size": 32,
                "patch_size": 4,
                "global_attn_indexes": [1],
                "window_size": 4,
                "mlp_dim": 32,
                "output_channels": 8,
            },
        ),
        _run_of_tiles(4),
        _tiles,
    ),
    "deepseek_vl": VisionFamily(
        _of("DeepseekVL", "llama", "siglip_vision_model", vision={"vision_use_head": False}),
        _run(16),
        _noise(1, 3, 32, 32),
    ),
    "lighton_ocr": VisionFamily(
        _of("LightOnOcr", "qwen3", "pixtral", spatial_merge_size=2, vision={"head_dim": 16}),
        lambda size: [BREAK, *[IMAGE] * (2 * size), END],
        _pixtral,
    ),
    "llava_onevision": VisionFamily(
        _of(
            "LlavaOnevision",
            "qwen2",
            "siglip_vision_model",
            image_grid_pinpoints=[[32, 32], [32, 64], [64, 32]],
            vision={"vision_use_head": False},
            video_token_id=313,
        ),
        _next_tokens,
        _llava_next,
    ),
    "qianfan_ocr": VisionFamily(
        _of(
            "QianfanOCR",
            "qwen3",
            "qianfan_ocr_vision",
            vision={"image_size": [32, 32], "patch_size": [8, 8]},
            vision_feature_select_strategy="default",
        ),
        _run_of_tiles(4),
        _tiles,
    ),
    "ovis2": VisionFamily(
        _of(
            "Ovis2",
            "qwen2",
            "ovis2_vision",
            visual_indicator_token_ids=[311, 312, 313, 314, 315],
            vocab_size=320,
            hidden_size=64,
            vision={"vocab_size": 64, "hidden_stride": 2},
        ),
        lambda size: [311, *[IMAGE] * 4 * size, 315],
        _tiles,
    ),
    "llama4": VisionFamily(
        _of(
            "Llama4",
            "llama4_text",
            "llama4_vision_model",
            text={"num_local_experts": 2, "attention_chunk_size": 512, "intermediate_size_mlp": 96},
            vision={
                "vision_output_dim": 32,
                "projector_input_dim": 32,
                "projector_output_dim": 32,
                "hidden_size": 32,
                "intermediate_size": 128,
            },
        ),
        _run_of_tiles(4),
        _tiles,
    ),
    "granite4_vision": VisionFamily(
        _of(
            "Granite4Vision",
            "granite4_vision_text",
            "siglip_vision_model",
            image_grid_pinpoints=[[32, 32], [32, 64], [64, 32]],
            downsample_rate="1/2",
            deepstack_layer_map=[[-1, 0], [-2, 1]],
            spatial_target_layers=[],
            vision={"hidden_size": 64},
            vision_feature_select_strategy="full",
            qformer_config={
                "hidden_size": 64,
                "num_attention_heads": 1,
                "intermediate_size": 32,
                "encoder_hidden_size": 64,
            },
        ),
        lambda size: [IMAGE] * {1: 10, 2: 14, 3: 16}[size],
        _llava_next,
    ),
    "glm4v_moe": VisionFamily(
        lambda: transformers.Glm4vMoeConfig(
            text_config={
                **_TEXT,
                **_MROPE,
                "partial_rotary_factor": 1.0,
                "n_routed_experts": 4,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 32,
                "n_group": 1,
                "topk_group": 1,
                "first_k_dense_replace": 1,
                "n_shared_experts": 1,
            },
            vision_config=_glm4v().vision_config.to_dict(),
            image_token_id=IMAGE,
            image_start_token_id=BREAK,
            image_end_token_id=END,
        ),
        lambda size: [BREAK, *[IMAGE] * (2 * size), END],
        _glm,
        token_types="mm_token_type_ids",
    ),
    "aria": VisionFamily(
        _of(
            "Aria",
            "aria_text",
            "idefics3_vision",
            projector_patch_to_query_dict={16: 4},
            text={"moe_num_experts": 4, "moe_topk": 2, "moe_num_shared_experts": 1},
        ),
        _run(4),
        _noise(1, 3, 32, 32),
    ),
    "exaone4_5": VisionFamily(
        lambda: transformers.Exaone4_5_Config(
            text_config={
                **_TEXT,
                "model_type": "exaone4",
                "sliding_window": None,
                "layer_types": ["full_attention"] * 2,
            },
            vision_config={
                "depth": 3,
                "hidden_size": 32,
                "num_heads": 2,
                "num_key_value_heads": 1,
                "patch_size": 8,
                "intermediate_size": 48,
                "out_hidden_size": 64,
                "fullatt_block_indexes": [1],
                "window_size": 32,
            },
            image_token_id=IMAGE,
            video_token_id=313,
        ),
        lambda size: [BREAK, *[IMAGE] * (2 * size), END],
        _glm,
    ),
    "llava_next_video": VisionFamily(
        _of(
            "LlavaNextVideo",
            "llama",
            "clip_vision_model",
            image_grid_pinpoints=[[32, 32], [32, 64], [64, 32]],
            video_token_id=313,
            spatial_pool_stride=2,
        ),
        _next_tokens,
        _llava_next,
    ),
    "paddleocr_vl": VisionFamily(
        lambda: transformers.PaddleOCRVLConfig(
            text_config={**_TEXT, **_MROPE},
            vision_config=_VISION,
            image_token_id=IMAGE,
            video_token_id=313,
            vision_start_token_id=BREAK,
            vision_end_token_id=END,
        ),
        lambda size: [BREAK, *[IMAGE] * (2 * size), END],
        _paddle,
        token_types="mm_token_type_ids",
    ),
    "glm4v": VisionFamily(
        _glm4v, lambda size: [BREAK, *[IMAGE] * (2 * size), END], _glm, token_types="mm_token_type_ids"
    ),
}


def new_family(name: str) -> Any:
    torch.manual_seed(7)
    model = transformers.AutoModelForImageTextToText.from_config(VISION_FAMILIES[name].config()).eval().float()
    decoder = set(model.get_decoder().parameters())
    for parameter in model.parameters():
        if parameter.ndim > 1 and parameter not in decoder and parameter.shape[0] != _SMALL["vocab_size"]:
            torch.nn.init.normal_(parameter, std=0.15)
    model.generation_config = transformers.GenerationConfig(pad_token_id=0)
    return model


@dataclass
class FamilyPrompt:
    """Builds tokens and pictures part by part."""

    model: Any
    family: VisionFamily
    ids: list[int] = field(default_factory=list)
    pixels: list[Pixels] = field(default_factory=list)
    vision_inputs: list[VisionInput] = field(default_factory=list)

    def text(self, length: int, seed: int) -> "FamilyPrompt":
        self.ids += prompt(length, seed)
        return self

    def picture(self, size: int, seed: int) -> "FamilyPrompt":
        begin, tokens = len(self.ids), self.family.tokens(size)
        pixels = self.family.pixels(size, torch.Generator().manual_seed(seed))
        self.ids += tokens
        self.pixels.append(pixels)
        shown = {"input_ids": torch.tensor([tokens]), **pixels, **self._types(tokens)}
        places = [at for at, token in enumerate(tokens) if token == IMAGE]
        spans: list[tuple[int, int]] = []
        for at in places:
            if spans and spans[-1][1] == begin + at:
                spans[-1] = (spans[-1][0], begin + at + 1)
            else:
                spans.append((begin + at, begin + at + 1))
        self.vision_inputs.append(
            VisionInput(
                "image", f"{size} {seed}".encode(), (1, 1, 48), tuple(spans), None, shown=ShownPictures(shown, places)
            )
        )
        return self

    def _types(self, ids: Sequence[int]) -> Pixels:
        name = self.family.token_types
        return {name: torch.tensor([[int(token == IMAGE) for token in ids]])} if name else {}

    def generate_kwargs(self) -> Mapping[str, Any]:
        if not self.pixels:
            return {}
        joined = {name: torch.cat([one[name] for one in self.pixels], self.family.joined_at) for name in self.pixels[0]}
        return {**joined, **self._types(self.ids)}

    @property
    def media(self) -> PreprocessedMedia:
        return PreprocessedMedia(tuple(self.vision_inputs), self.generate_kwargs)

    @property
    def sample(self) -> PictureSample:
        return PictureSample(self.ids, self.media)

    def request(self, **params: Any) -> Request:
        return Request(replace(new_request(self.ids, **params).prepared, vision=self.media if self.pixels else None))

    def greedy(self, length: int) -> list[int]:
        """Returns the tokens of model.generate(). To be called before a batch runner changes the model's attention."""
        ids = torch.tensor([self.ids])
        self._forget_positions()
        out = self.model.generate(
            ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=length, **self.generate_kwargs()
        )
        return [int(token) for token in out[0, len(self.ids) :]]

    def greedy_within_letters(self) -> list[int]:
        """The same under the grammar of `letters`."""
        self._forget_positions()
        return letters.greedy_within(self.model, self.ids, self.generate_kwargs())

    def _forget_positions(self) -> None:
        if hasattr(self.model.base_model, "rope_deltas"):
            self.model.base_model.rope_deltas = None


def mixed_prompts(name: str, model: Any) -> list[FamilyPrompt]:
    """One picture, several, the same one twice, and text."""

    def new() -> FamilyPrompt:
        return FamilyPrompt(model, VISION_FAMILIES[name])

    return [
        new().text(5, 1).picture(1, 1).text(6, 2),
        new().text(17, 3),
        new().picture(2, 2).text(4, 4).picture(3, 3).text(9, 5),
        new().text(3, 6).picture(3, 4).text(5, 7),
        new().text(4, 8).picture(1, 5).text(2, 9).picture(2, 6).text(3, 10).picture(1, 5).text(6, 11),
        new().text(30, 12),
        new().text(5, 1).picture(1, 8).text(6, 2),
        new().text(1, 14),
    ]
