/** HTML of a model's text becomes elements here: cleaned by DOMPurify, with links that tell nobody. */

import DOMPurify from "../../vendor/dompurify.js";
import { t } from "../../app/words.js";
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

export function elementsOf(html) {
  const fragment = DOMPurify.sanitize(html, CONFIG);
  fragment.querySelectorAll("a[href]").forEach(mendLink);
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

function mendLink(link) {
  if (!/^(https?:|mailto:)/i.test(link.getAttribute("href"))) return link.removeAttribute("href");
  link.target = "_blank";
  link.rel = "noopener noreferrer nofollow";
  if (link.className === "picture-link") link.textContent = t("chat.link.picture", { name: link.textContent });
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
