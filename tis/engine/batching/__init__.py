"""Computes many requests in one forward pass. Batching never changes the tokens that a request gets.

`Scheduler` and `BlockPool` plan each step in plain Python; `BatchRunner` carries the plan out on tensors.

A step: `Scheduler.plan` schedules one token for every decoding sequence and fills the rest of the token budget with
chunks of prompts. `StepBudget` says how many tokens that is, so that a step takes about `STEP_SECONDS`. `BatchRunner`
puts all of them into one row without padding and calls the model. The model's attention is `batch_attention`, set
through the attention interface of Transformers: a sequence sees its own run of blocks and nothing else. `pick_all`
picks the tokens of all rows.

`text_attentions` finds by a probe of two tokens which modules of a model call that interface, and with heads of what
size; `LongRopes` gives each sequence the factors of its own length: `docs/decisions/0096-attention-of-any-family.md`.

On a CPU `fuse_layers` replaces the decoder layers of most families by `FusedLayers`, which computes them in one call
of the native kernels, attention included: `docs/decisions/0089-layers-in-one-call.md`.

Prompt lookup: a `Drafter` per sequence drafts tokens that may follow, from what its prompt or answer has said before,
or a `DraftModel` does (`docs/decisions/0120-a-draft-model.md`). The step computes them behind the newest token, picks
at each place as it would without, and the draft holds while it has what was picked: `docs/decisions/0053-prompts.md`.

`BlockPool` finds blocks that requests with the same beginning left in the cache. When it is full, the youngest
sequence gives its blocks back and is computed again later. Why a sequence owns one unbroken run of blocks:
`docs/decisions/0005-blocks-and-prefixes.md`. In float32, greedy tokens equal those of `model.generate()`,
whatever else is in the batch; `tests/engine/batching/test_exact.py` checks it for every architecture that it names.

Layers that keep states (convolutions, linear attention) become `StateLayer`s, which call the family's own on the rows
of a step (`use_native_states`: with functions in C): `docs/decisions/0099-states-beside-blocks.md`.

Images: `VisionEncoder` runs the vision tower for what the sequences of a step show, and caches the features
(`VISION_CACHE_MB`). A sequence whose images are not encoded yet waits for another step; no other sequence waits.
`embed` puts features where the placeholders are. `mrope_positions` asks the model where tokens
are in time, height and width. The hashes of blocks cover the images (`Sequence.hashes`): later questions about the
same image share its blocks, another image of the same size does not. How a tower is called, a `Tower` knows:
`QwenTower`, or `ForwardTower` for any other family, if `find_tower` computes with it what the model computes alone:
`docs/decisions/0010-pictures-in-the-batch.md`.

Turns: a model that cannot be batched has a `TurnRunner`, with the same `Scheduler`, `Places` and sampling
(`ScheduledRunner`). A `SteppedModel` gives each sequence the cache that `generate()` would have made (`OwnCache`), and
computes its tokens as `generate()` would. `StatePool` counts the memory of the caches instead of their blocks:
`docs/decisions/0098-turns.md`.
"""
