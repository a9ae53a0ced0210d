"""Text in `encrypted_content`: what a client has to send back without a store.

It is no secret, as the same answer shows it in the open; it is in a form that clients hand back as it is. What another
server has sealed cannot be read.
"""

import base64
from typing import Any

_PREFIX = "tis1."


def sealed(text: str) -> str:
    return _PREFIX + base64.urlsafe_b64encode(text.encode()).decode()


def unsealed(given: Any) -> str | None:
    if not (isinstance(given, str) and given.startswith(_PREFIX)):
        return None
    try:
        return base64.b64decode(given.removeprefix(_PREFIX), altchars=b"-_", validate=True).decode()
    except ValueError:
        return None
