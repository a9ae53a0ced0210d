"""Preprocesses images, videos and sounds as the official processors do, to the same numbers, but without torchvision.

`choose_vision` chooses the `VisionProcessor` of a model: `QwenVision` computes the official numbers itself,
`OfficialVision` calls the model's own processor, whose part for videos works without torchvision (`video_frames`).
`encode` turns a prompt into tokens with placeholders; `preprocess` turns each `Picture` and `Video` into a
`VisionInput`, the pixels that belong to runs of placeholders.

The package knows no URLs: `tis/media/` has loaded and decoded the pixels. `VisionEncoder` of the batch runs the
vision tower on the result.
"""
