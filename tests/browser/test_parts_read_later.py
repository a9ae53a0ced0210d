"""A part of a page whose module is read when the page has time, or when the part is wanted."""

from playwright.sync_api import expect

from tests.browser.conftest import Visitor
from tests.serving import Served

# An effect runs after a frame: the module is there before that, and after the part was drawn without it.
_ARRIVES_BETWEEN_DRAWING_AND_EFFECTS = """async () => {
  const app = new URL("../app/", document.querySelector("script[src*='/status/']").src);
  const { later } = await import(new URL("later.js", app));
  const { html, render } = await import(new URL("view.js", app));
  let arrive;
  const asked = new Promise((resolve) => { window.given = resolve; });
  const Part = later(() => new Promise((resolve) => { arrive = resolve; window.given(); }), () => {});
  await asked;
  const place = document.body.appendChild(document.createElement("div"));
  render(html`<${Part} says="The part stands" />`, place);
  arrive(({ says }) => html`<p>${says}</p>`);
}"""


def test_a_part_that_is_wanted_while_its_module_arrives_is_shown(visitor: Visitor, echo_server: Served) -> None:
    page = visitor.open(f"{echo_server.url}/status")
    page.evaluate(_ARRIVES_BETWEEN_DRAWING_AND_EFFECTS)
    expect(page.get_by_text("The part stands")).to_be_visible()
