/** A block of code: its language, a button to copy, and colours once it is complete. A growing one only gets what is new. */

import { assetOf } from "../../app/addresses.js";
import { t } from "../../app/words.js";
import { copyText } from "../../design/components.js";
import { highlight } from "./highlight.js";

const SVG = "http://www.w3.org/2000/svg";
const COPIED_MILLISECONDS = 1500;

export function codeBlock(code, language, isFinal = true) {
  const element = document.createElement("div");
  element.className = "code-block";
  const header = document.createElement("header");
  const label = Object.assign(document.createElement("span"), { className: "grow mono", textContent: language || "text" });
  header.append(label, copyButton(() => text.data));
  const pre = Object.assign(document.createElement("pre"), { tabIndex: 0 });
  pre.setAttribute("role", "region");
  pre.setAttribute("aria-label", language || "text");
  const body = document.createElement("code");
  const text = document.createTextNode(code);
  body.append(text);
  pre.append(body);
  element.append(header, pre);
  if (isFinal) highlight(body, code, language);
  return {
    element,
    language,
    update(next, isNowFinal) {
      if (next.startsWith(text.data)) text.appendData(next.slice(text.data.length));
      else text.data = next;
      if (isNowFinal) highlight(body, next, language);
    },
  };
}

function copyButton(textOf) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "button quiet small icon-only" });
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  svg.append(use);
  button.append(svg);
  const show = (icon, label) => {
    use.setAttribute("href", assetOf(`vendor/icons.svg#${icon}`));
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  show("copy", t("chat.code.copy"));
  button.addEventListener("click", async () => {
    await copyText(textOf());
    show("check", t("copied"));
    setTimeout(() => show("copy", t("chat.code.copy")), COPIED_MILLISECONDS);
  });
  return button;
}
