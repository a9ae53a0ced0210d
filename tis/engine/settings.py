"""Settings of the model and of generation."""

from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from tis.setting_types import CommaSeparated


class ModelSettings(BaseModel):
    """Model"""

    model_repo_id: str = Field(
        "Qwen/Qwen3-VL-2B-Thinking",
        min_length=1,
        description="hub id, local folder, GGUF file, catalogue id, or `echo`",
    )
    served_model_name: str | None = Field(
        None,
        max_length=256,
        description="id of that model for clients; empty: its catalogue id, its hub id, or the name of its folder",
    )
    models: CommaSeparated = Field(
        (),
        description="ids of the catalogue to serve, separated by commas; with MODEL_REPO_ID beside that model",
    )
    adapters: CommaSeparated = Field(
        (),
        description="LoRA adapters of the main model, NAME=FOLDER or NAME=HUB_ID, by commas; each is a model id",
    )
    draft_model: str | None = Field(
        None,
        min_length=1,
        description="folder or hub id of a smaller model with the same tokenizer, which drafts the answers of the main "
        "model where that makes them faster; the answers are the same",
    )
    model_config_path: str = Field(
        "configs/model_config.yaml",
        description="the catalogue of models; without this file, the one in the package",
    )
    auto_download_models: bool = Field(
        True, description="download models that are not on this machine; 0: a missing one ends the start"
    )
    hf_token: SecretStr | None = Field(None, description="Hugging Face token, for gated models")
    device_map: str = Field("auto", description="where the weights go: auto, cpu, cuda, cuda:1, ...")
    torch_dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="type of the weights; auto keeps the saved type. A CPU computes 16-bit weights as it can"
    )
    attn_implementation: str | None = Field(
        None,
        description="for models that are not batched: sdpa, eager, ...; batches have their own and refuse others",
    )
    load_in_4bit: bool = Field(False, description="4-bit weights with bitsandbytes (CUDA only)")
    load_in_8bit: bool = Field(False, description="8-bit weights with bitsandbytes (CUDA only)")
    trust_remote_code: bool = Field(False, description="run Python code that comes with a model")
    eager_load_model: bool = Field(
        False,
        description="load at start instead of at the first request; unset, `tis serve` does and `main.py` does not",
    )
    enable_warmup: bool = Field(True, description="compute a few tokens after a load, before the first request")
    model_idle_seconds: float = Field(
        0, ge=0, description="unload a model that nobody has used for so long; the next request loads it; 0 = never"
    )
    model_memory_mb: int = Field(
        0,
        ge=0,
        description="MiB for the weights and caches of all loaded models; what does not fit lets idle ones go first; "
        "0 = the memory of the machine, or of its GPUs",
    )
    load_wait_seconds: float = Field(60, ge=0, le=3600, description="how long a request waits for a loading model")
    strict_model: Literal["auto", "0", "1"] = Field(
        "auto",
        description="unknown `model` names: auto = 404 if several models of the task are served, 1 = always, 0 = never",
    )


class GenerationSettings(BaseModel):
    """Generation"""

    max_tokens: int = Field(4096, ge=1, description="max tokens of an answer if the request sets none")
    temperature: float = Field(
        0.7,
        ge=0,
        le=2,
        description="used if neither request nor catalogue sets one; unset, the model's own value comes first",
    )
    max_context_tokens: int = Field(0, ge=0, description="cap on prompt + answer; 0 = the context length of the model")
    max_batch_size: int = Field(32, ge=1, le=1024, description="max answers in a batch")
    max_batch_tokens: int = Field(
        512,
        ge=16,
        description="max tokens per step; longer prompts are prefilled in chunks, so that other requests go on",
    )
    step_seconds: float = Field(
        0.25,
        ge=0,
        le=60,
        description="how long a step should take; prompts and images are split accordingly; 0 = MAX_BATCH_TOKENS alone",
    )
    cache_tokens: int = Field(
        0,
        ge=0,
        description="tokens of the KV cache for running requests and shared prefixes; 0 = what the memory allows",
    )
    cache_dtype: Literal["auto", "int8"] = Field(
        "auto",
        description="type of the KV cache: auto, as the model computes; int8, on a CPU, half the memory of bfloat16; "
        "the log says if it does not apply",
    )
    cache_touched_tokens: int = Field(
        16_384,
        ge=0,
        description="tokens of a CPU's KV cache that get their memory in the background after a load, not with the "
        "requests that need it, while a quarter of the machine or container is left; 0 = none",
    )
    max_shown_pixels: int = Field(
        0,
        ge=0,
        description="larger images are scaled down for the model; 0 = the model's own limit, but 1,048,576 on a CPU",
    )
    vision_cache_mb: int = Field(256, ge=0, description="MiB of memory for encoded images and videos")
    embedding_cache_mb: int = Field(64, ge=0, description="MiB of memory for the newest vectors of embeddings")
    quantize: Literal["int8", "int4"] | None = Field(
        None,
        description="weights as integers on a CPU, of 8 bits (int8) or 4 (int4); the log says if it does not apply",
    )
    kernels: Literal["auto", "off"] = Field(
        "auto", description="native kernels for decoder layers on a CPU, where they are built; off: torch alone"
    )
    cpu_threads: int = Field(
        0,
        ge=0,
        le=1024,
        description="threads that compute a step on a CPU; 0 = OMP_NUM_THREADS, else one for each core that this "
        "process may use: its affinity and the quota of its container",
    )
    prompt_lookup: Literal["on", "off"] = Field(
        "on",
        description="drafts answers from what prompt and answer said before, which the model checks several tokens a "
        "step; the answers are the same",
    )
    max_queue_size: int = Field(64, ge=1, description="max requests that wait for the model; more get a 429")
    gen_stall_seconds: float = Field(
        120,
        ge=0,
        le=86400,
        description="after this long, a step hangs: the process ends with code 70; `tis serve` restarts it; 0: never",
    )
    enable_auto_compression: bool = Field(
        False, description="drop the oldest turns of a prompt that is too long, instead of a 400"
    )
