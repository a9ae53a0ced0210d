"""Pictures of products: uploads, order and texts.

`service` gives what `picture_files` has kept to products. `AltTextProposals` asks a model what pictures show, as a
`BackgroundJob`. Those that sheets name are fetched by `sheets/sheet_pictures.py`.
"""
