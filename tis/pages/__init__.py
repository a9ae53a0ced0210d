"""Pages for a browser: chat (`/`), status (`/status`), and the description of the API (`/docs`, `/openapi.json`).

Their source is the folder `web/` of the repository: plain modules, styles and pictures, and libraries at pinned
versions in `web/vendor`. There is nothing to build, and nothing comes from elsewhere. A page uses the public routes,
as any client does.
"""
