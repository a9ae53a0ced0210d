"""Quantises a GGUF file with llama.cpp and writes its logits for texts. Run by a Python that has `cyllama`.

    PYTHON benchmarks/llama_cpp_logits.py MODEL.gguf FORMAT WINDOWS.json LOGITS

`cyllama` brings llama.cpp compiled; the texts are token ids, read as one window each, with keys and values in float32.
LOGITS are float32, row behind row. Prints the bytes of the model as llama.cpp counts them.
"""

import json
import sys
from array import array
from pathlib import Path

FORMATS = {"BF16": 32, "Q8_0": 7, "Q4_0": 2, "Q4_K_M": 15}  # `llama_ftype`
_FLOAT32 = 0  # `ggml_type`


def main() -> None:
    from cyllama.llama import llama_cpp

    source, name, windows_file, target = sys.argv[1:]
    windows = json.loads(Path(windows_file).read_text())
    llama_cpp.disable_logging()
    llama_cpp.llama_backend_init()
    model_file = source
    if name != "BF16":
        model_file = str(Path(target).with_suffix(".gguf"))
        how = llama_cpp.LlamaModelQuantizeParams()
        how.ftype = FORMATS[name]
        llama_cpp.model_quantize(source, model_file, how)

    class Model(llama_cpp.LlamaModel):
        """What 0.2.18 asks for when it reads logits, and has not."""

        @property
        def n_vocab(self) -> int:
            return int(self.get_vocab().n_vocab)

    model = Model(model_file)
    limits = llama_cpp.LlamaContextParams()
    limits.n_ctx = limits.n_batch = limits.n_ubatch = max(map(len, windows))
    limits.type_k = limits.type_v = _FLOAT32
    context = llama_cpp.LlamaContext(model, limits)
    with Path(target).open("wb") as out:
        for window in windows:
            batch = llama_cpp.LlamaBatch(n_tokens=len(window), embd=0, n_seq_max=1)
            for position, token in enumerate(window):
                batch.add(token, position, [0], True)
            context.kv_cache_clear()
            context.decode(batch)
            for position in range(len(window)):
                array("f", context.get_logits_ith(position)).tofile(out)
    print(model.size)


if __name__ == "__main__":
    main()
