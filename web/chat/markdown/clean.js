/** HTML of a model's text becomes elements here: cleaned by DOMPurify, with links that tell nobody. */

import DOMPurify from "../../vendor/dompurify.js";
import { t } from "../../app/words.js";
import { hostOf } from "../answers/sources.js";
import { codeBlock } from "./code_block.js";
import { showFormulas } from "./formulas.js";

const TAGS = (
  "p br hr h1 h2 h3 h4 h5 h6 ul ol li blockquote pre code em strong del s ins mark sub sup kbd b i u a img span input " +
  "table thead tbody tr th td"
).split(" ");
const CONFIG = {
  ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "title", "class", "start", "type", "checked", "disabled", "align", "src", "alt"],
  ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
};

/** `sources`: what the answer cites, by address; their numbers stand behind the links. */
export function elementsOf(html, sources = null) {
  const fragment = DOMPurify.sanitize(html, CONFIG);
  fragment.querySelectorAll("a[href]").forEach((link) => mendLink(link, sources));
  fragment.querySelectorAll("sup.note-number").forEach(mendNoteNumber);
  fragment.querySelectorAll("img").forEach(mendPicture);
  fragment.querySelectorAll("table").forEach(mendTable);
  fragment.querySelectorAll("pre > code").forEach((code) => code.parentNode.replaceWith(codeBlock(code.textContent, languageOf(code)).element));
  fragment.querySelectorAll("input").forEach((input) => { if (input.type !== "checkbox") input.remove(); else input.setAttribute("aria-label", input.checked ? "☑" : "☐"); });
  showFormulas(fragment);
  return fragment;
}

function languageOf(code) {
  return /language-(\S+)/.exec(code.className)?.[1] ?? "";
}

function mendLink(link, sources) {
  if (!/^(https?:|mailto:)/i.test(link.getAttribute("href"))) return link.removeAttribute("href");
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  if (link.className === "picture-link") link.textContent = t("chat.link.picture", { name: link.textContent });
  const source = sources?.get(normal(link.getAttribute("href")));
  // "[1]" is the number of a source already.
  const number = /^\[?(\d{1,3})\]?$/.exec(link.textContent)?.[1];
  if (!source && !number) return;
  const sup = Object.assign(document.createElement("sup"), { className: "cite" });
  const cited = number ? link : Object.assign(link.cloneNode(false), { className: "" });
  if (number) link.replaceWith(sup);
  else link.after(sup);
  cited.textContent = source?.number ?? number;
  cited.title = source?.title || hostOf(link.getAttribute("href"));
  cited.setAttribute("aria-label", t("chat.source", { number: cited.textContent, title: cited.title }));
  sup.append(cited);
}

/** Addresses as browsers write them, to find one in what is cited. */
export function normal(url) {
  try {
    return new URL(url).href;
  } catch {
    return url;
  }
}

function mendNoteNumber(sup) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "note-ref", textContent: sup.textContent });
  button.setAttribute("aria-label", t("chat.footnote", { number: sup.textContent }));
  sup.replaceChildren(button);
}

function mendPicture(picture) {
  if (!picture.getAttribute("src")?.startsWith("data:image/")) return picture.remove();
  const button = Object.assign(document.createElement("button"), { type: "button", className: "picture-button" });
  button.setAttribute("aria-label", picture.alt || t("chat.picture"));
  picture.replaceWith(button);
  button.append(picture);
}

/** A wide table scrolls by itself; a keyboard reaches it. */
function mendTable(table) {
  const scroller = Object.assign(document.createElement("div"), { className: "table-scroll", tabIndex: 0 });
  scroller.setAttribute("role", "region");
  scroller.setAttribute("aria-label", t("chat.table"));
  table.replaceWith(scroller);
  scroller.append(table);
  for (const cell of table.querySelectorAll("th:empty")) cell.replaceWith(document.createElement("td"));
}
