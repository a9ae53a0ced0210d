"""The page that links in mails open. A form sends the secret: mail scanners follow links, and must not use them up."""

import base64
import hashlib
from functools import cache

from fastapi import APIRouter, Response

router = APIRouter(prefix="/auth", include_in_schema=False)  # mail programs add query parameters (`utm_source`)

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:3rem auto;padding:0 1rem}"
    "input,button{font:inherit;padding:.5rem;width:100%;box-sizing:border-box;margin:.5rem 0}"
)
# The secret stands behind the `#`, which browsers send to nobody.
_SCRIPT = """
const [purpose, token] = location.hash.slice(1).split("=");
history.replaceState(null, "", location.pathname);
const form = document.querySelector("form"), said = document.querySelector("p");
const field = document.querySelector("input");
field.hidden = purpose !== "reset";
field.required = purpose === "reset";
form.hidden = !["reset", "confirm", "change"].includes(purpose);
if (form.hidden) said.textContent = "Tautan ini tidak lengkap. / This link is not complete.";
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = purpose === "reset" ? {token, password: field.value} : {token};
  const answer = await fetch(purpose === "reset" ? "password/reset" : "email/confirm", {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
  });
  const detail = (await answer.json()).detail;
  said.textContent = Array.isArray(detail) ? detail.map((one) => one.msg).join(" ") : detail;
  form.hidden = answer.ok;
});
"""


@cache
def _page() -> tuple[str, str]:
    """The page and its Content-Security-Policy."""
    html = f"""<!doctype html>
<html lang="id">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Akun / Account</title>
<style>{_STYLE}</style>
</head>
<body>
<form>
<input type="password" autocomplete="new-password" minlength="8" maxlength="200"
 aria-label="Kata sandi baru / New password" placeholder="Kata sandi baru / New password">
<button>Lanjutkan / Continue</button>
</form>
<p role="status"></p>
<script>{_SCRIPT}</script>
</body>
</html>
"""
    hashes = {name: _hash_of(text) for name, text in (("script", _SCRIPT), ("style", _STYLE))}
    policy = (
        f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html, policy


@router.get("/link")
async def link_page() -> Response:
    html, policy = _page()
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(html, media_type="text/html; charset=utf-8", headers=headers)


def _hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
