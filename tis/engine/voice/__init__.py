"""Models that speak: sentences in, samples out, as Transformers' own code computes them.

`sentences` cuts a text so that the first sound comes while the rest is computed. A sentence is one request of the
model's queue: `SpeakingRunner` computes one at a time, so long texts of several clients take turns. A `SpeakingModel`
is one architecture (`vits_voice`, `speecht5_voice`, `bark_voice`, ...); `load_voice` chooses it by the type of the
model, and refuses the others by name. `OwnNoise` gives each sentence the noise of its seed, so that it always sounds
the same. `spoken` is the interface: plain values, without torch.
"""
