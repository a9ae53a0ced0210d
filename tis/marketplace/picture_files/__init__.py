"""The files of pictures, from what a client sends or names to what everybody may fetch; no products, no rights.

`PictureInput` decodes (`tis/media`), `render_picture` makes WebP files of the pixels, a `PictureStore` has them,
`PictureStorage` keeps their rows in step, and `PictureDesk` does all this for routes, in threads of its own.
"""
