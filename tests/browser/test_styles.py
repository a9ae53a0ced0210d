"""/pages/styles, which has every part of the design: colours and names are good enough for everybody."""

from collections.abc import Iterator

import pytest

from tests.browser.conftest import Visitor
from tests.browser.looks import ALL_LOOKS, in_looks
from tests.browser.page_watch import require_accessible
from tests.serving import Served, served, settings_with


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with(development=True)) as server:
        yield server


@in_looks(*ALL_LOOKS)
def test_each_part_of_the_design_is_accessible(visitor: Visitor, server: Served) -> None:
    page = visitor.open(f"{server.url}/pages/styles")
    page.get_by_role("heading", name="Icons").wait_for()
    require_accessible(page)
    visitor.whole_picture(page, "styles")
    page.get_by_role("button", name="Drawer").click()
    page.get_by_role("dialog").wait_for()
    require_accessible(page)
    visitor.picture(page, "styles-drawer")
