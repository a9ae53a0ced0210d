"""Loads images, videos and sounds from URLs, data URIs, base64 or permitted paths, or raises `BadMedia`.

`MediaLoader` is the entry; the package knows no models. Imports inside point one way: the loader; then fetching,
inline data, local files, videos and sounds; then images; then limits, errors and types. Images are decoded in threads;
sounds, videos, and images that may take long (`needs_sandbox`), in processes of `tis/sandbox/`. `tis/network/` decides
which addresses may be dialled. Reasons: `docs/decisions/0021-media-and-sandboxes.md`.
"""
