"""A long answer stays smooth: 5,000 tokens at 200 a second leave less than 10 ms of work for a frame."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import CDPSession

from tests.browser.chat_page import ChatPage
from tests.browser.conftest import Visitor
from tests.serving import Served, served, settings_with

_MAX_MILLISECONDS = 10
# Frames of 1/60 s that get 200 tokens a second, of four characters each.
_CHARACTERS_A_FRAME = 200 * 4 // 60
_PART = """## Part {number}

A paragraph with **bold words**, `code` and a [link](https://example.com/{number}), which goes on for a while, as the
answers of models do when somebody asks them for more than they know.

1. First, something about ships, and about how they are steered
2. Second, something about ports
   - with a list inside of it

| Port | Ships | Tons |
|---|--:|--:|
| Merak | {number} | 1200 |
| Bakauheni | 7 | 900 |

```python
def sail(ship: str, port: int = {number}) -> str:
    return f"{{ship}} sails to {{port}}"
```

Euler wrote \\(e^{{i\\pi}} = -1\\) in a letter.

"""
_TEXT = "".join(_PART.format(number=number) for number in range(60))[:20_000]  # 5,000 tokens
_LIST = "".join(f"- Item {number} of a list that does not end, with **bold** words\n" for number in range(400))[:20_000]
_CODE = "```python\n" + "".join(f"value_{number} = compute({number})  # a comment\n" for number in range(500))[:20_000]
# Grows a text by frames. Of ten frames one is drawn as it comes; what lies between comes at once.
_GROW = """async ({ text, step }) => {
  const address = document.querySelector('script[src*="chat/main.js"]').src;
  const { GrowingText } = await import(address.replace("main.js", "markdown/growing_text.js"));
  const root = Object.assign(document.createElement("div"), { className: "rich" });
  const holder = Object.assign(document.createElement("div"), { className: "thread" });
  holder.append(root);
  document.querySelector("#content").replaceChildren(holder);
  const growing = new GrowingText(root);
  let drawings = 0;
  await new Promise(requestAnimationFrame);
  for (let end = step * 9; end < text.length; end += step * 9) {
    for (const more of [0, step]) {
      end += more;
      growing.update(text.slice(0, end), false);
      root.getBoundingClientRect();
      drawings += 1;
    }
  }
  growing.update(text, true);
  window.grown = root;
  return drawings;
}"""
_IS_SAME = """async (text) => {
  const address = document.querySelector('script[src*="chat/main.js"]').src;
  const { GrowingText } = await import(address.replace("main.js", "markdown/growing_text.js"));
  const once = document.createElement("div");
  new GrowingText(once).update(text, true);
  return once.textContent === window.grown.textContent;
}"""


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(settings_with()) as server:
        yield server


def test_5000_tokens_leave_time_in_each_frame(visitor: Visitor, server: Served, artefacts: Path) -> None:
    page = visitor.open(server.url)
    ChatPage(page, visitor.look).field.wait_for()
    # The time of the page's thread, not of the clock: other processes of this machine do not count.
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})
    report = {}
    for name, text in {"mixed": _TEXT, "list": _LIST, "code": _CODE}.items():
        before = _seconds(metrics)
        drawings = page.evaluate(_GROW, {"text": text, "step": _CHARACTERS_A_FRAME})
        after = _seconds(metrics)
        assert page.evaluate(_IS_SAME, text), f"{name}: grown is not the same as drawn at once"
        # Milliseconds a frame: all of the thread, and what of it is layout and styles.
        report[name] = {part: round((after[part] - before[part]) * 1000 / drawings, 2) for part in after}
    (artefacts / "chat-smooth.json").write_text(json.dumps(report, indent=2))
    assert all(0 < one["Task"] < _MAX_MILLISECONDS for one in report.values()), report


def _seconds(metrics: CDPSession) -> dict[str, float]:
    found = {one["name"]: one["value"] for one in metrics.send("Performance.getMetrics")["metrics"]}
    return {name: found[f"{name}Duration"] for name in ("Task", "Layout", "RecalcStyle")}
