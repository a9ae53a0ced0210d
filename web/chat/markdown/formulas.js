/** Formulas by KaTeX, which is loaded with the first of them. Drawn ones are kept: a growing text shows them again and again. */

import { assetOf } from "../../app/addresses.js";

const MAX_KEPT = 300;
const MAX_CHARACTERS = 5000;
const drawn = new Map();
let katex = null;
let loading = null;

export function showFormulas(root) {
  const spans = root.querySelectorAll(".math");
  if (!spans.length) return;
  if (katex) spans.forEach(draw);
  else load().then(() => spans.forEach(draw), () => {});
}

function load() {
  loading ??= (async () => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: assetOf("vendor/katex/katex.css") });
    document.head.append(sheet);
    katex = (await import("../../vendor/katex/katex.js")).default;
  })();
  return loading;
}

function draw(span) {
  const tex = span.textContent;
  const displayMode = span.classList.contains("display");
  if (tex.length > MAX_CHARACTERS) return;
  const key = `${displayMode}${tex}`;
  if (!drawn.has(key)) {
    if (drawn.size >= MAX_KEPT) drawn.delete(drawn.keys().next().value);
    const holder = document.createElement("span");
    katex.render(tex, holder, { displayMode, throwOnError: false, strict: "ignore", trust: false, maxExpand: 500, maxSize: 20 });
    drawn.set(key, holder);
  }
  span.replaceChildren(...drawn.get(key).cloneNode(true).childNodes);
}
