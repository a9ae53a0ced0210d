"""The encoder of a Whisper. A group of windows goes through it together, in slices between the steps of the decoder."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from tis.engine.speech.linear_maps import LinearMaker


class WhisperEncoder:
    def __init__(self, encoder: Any, maker: LinearMaker) -> None:
        """`encoder`: that of Transformers."""
        self.convolutions = (encoder.conv1, encoder.conv2)
        self.frames = int(encoder.config.max_source_positions)
        self.positions = encoder.embed_positions.weight.detach()[: self.frames]
        self.norm = encoder.layer_norm
        self.layers = [_EncoderLayer(layer, maker) for layer in encoder.layers]

    @property
    def device(self) -> Any:
        return self.positions.device

    def begin(self, mels: Sequence[Any]) -> "EncoderPass":
        return EncoderPass(self, mels)


class EncoderPass:
    """Some windows on their way through the encoder. `advance` computes a slice of it."""

    def __init__(self, encoder: WhisperEncoder, mels: Sequence[Any]) -> None:
        self._encoder = encoder
        self._mels = mels
        self._x: Any = None
        self._num_done = 0

    @property
    def is_done(self) -> bool:
        return self._x is not None and self._num_done == len(self._encoder.layers)

    def advance(self) -> None:
        encoder = self._encoder
        if self._x is None:
            positions = encoder.positions
            mels = torch.stack([*self._mels]).to(positions.device, positions.dtype)
            for convolution in encoder.convolutions:
                mels = gelu(convolution(mels))
            self._x = (mels.transpose(1, 2) + positions).contiguous().view(-1, positions.shape[1])
            return
        self._x = encoder.layers[self._num_done](self._x, len(self._mels))
        self._num_done += 1

    def results(self) -> list[Any]:
        """[frames, hidden] of each window."""
        return list(normed(self._x, self._encoder.norm).view(len(self._mels), self._encoder.frames, -1))


class _EncoderLayer:
    """`x += output(attention(norm(x)))`, then `x += down(gelu(up(norm(x))))`."""

    def __init__(self, layer: Any, maker: LinearMaker) -> None:
        attention = layer.self_attn
        self._heads, self._scale = attention.num_heads, attention.scaling
        self._norms = (layer.self_attn_layer_norm, layer.final_layer_norm)
        self._qkv = maker.of(attention.q_proj, attention.k_proj, attention.v_proj)
        self._output = maker.of(attention.out_proj)
        self._up, self._down = maker.of(layer.fc1, has_gelu=True), maker.of(layer.fc2)

    def __call__(self, x: Any, num_windows: int) -> Any:
        heads = self._qkv(normed(x, self._norms[0])).view(num_windows, -1, 3, self._heads, x.shape[1] // self._heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind()
        attended = scaled_dot_product_attention(query, key, value, scale=self._scale).transpose(1, 2)
        x = self._output(attended.reshape(len(x), -1), x)
        return self._down(self._up(normed(x, self._norms[1])), x)


def normed(x: Any, norm: Any) -> Any:
    return layer_norm(x, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
