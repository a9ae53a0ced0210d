"""Pictures of products: uploads, order and texts.

`service` gives what `picture_files` has kept to products. `PictureFetcher` does so for the rows of sheets,
`AltTextProposals` asks a model what pictures show; each is a `BackgroundJob`.
"""
