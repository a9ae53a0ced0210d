"""Loads the images and videos of a request from URLs, data URIs, base64 or permitted paths, or raises `BadMedia`.

`MediaLoader` is the entry; the package knows no models. Imports inside point one way: the loader; then fetching,
inline data, local files and videos; then images; then limits, errors and types. Images are decoded in threads;
videos, and images that may take long (`needs_sandbox`), in a `SandboxDecoder`, that is a process of `tis/sandbox/`.
`tis/network/` decides which addresses may be dialled. Reasons: `docs/decisions/0021-media-and-sandboxes.md`.
"""
