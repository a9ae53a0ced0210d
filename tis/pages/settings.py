"""Settings of the pages."""

from pydantic import BaseModel, Field

from tis.setting_types import CommaSeparated


class PageSettings(BaseModel):
    """Pages"""

    frame_ancestors: CommaSeparated = Field(
        (),
        description="origins of sites that may show the pages in a frame, as https://huggingface.co does; empty = none",
    )
    demo: bool = Field(
        False,
        description="the chat page of a server on a loopback HOST has a button that kills the server, to show that "
        "answers go on; `make demo` sets it",
    )
    development: bool = Field(
        False, description="/pages/styles shows all parts of the design, and changes of web/ need no restart"
    )
