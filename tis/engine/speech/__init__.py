"""Models that hear: windows of speech in, segments with times out.

`WhisperEncoder` computes windows in slices between the steps of `WhisperDecoder`, which computes the next token of all
running windows in one forward pass; `HearingRunner` decides what a step computes. `TokenRules` forbid tokens as
Transformers does, `attempt` judges what a window got and asks again at a higher temperature, `segments` and `words`
turn tokens into times. `heard` is the interface: plain values, without torch.
"""
