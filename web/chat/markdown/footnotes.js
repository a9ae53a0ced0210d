/** The footnotes of a text, below it. Their numbers lead there, and a button at each leads back. */

import { t } from "../../app/words.js";
import { elementsOf } from "./clean.js";
import { htmlOf, tokensOf } from "./language.js";

export class Footnotes {
  constructor(root) {
    this.root = root;
    this.element = null;
  }

  /** `notes`: of `References`. */
  show(references) {
    const notes = [...references.notes.values()].sort((one, other) => one.number - other.number);
    if (!notes.length) return;
    if (!this.element) {
      this.element = Object.assign(document.createElement("section"), { className: "footnotes" });
      this.element.setAttribute("aria-label", t("chat.footnotes"));
      this.root.append(this.element);
    }
    const list = document.createElement("ol");
    list.append(...notes.map((note) => itemOf(note, references)));
    this.element.replaceChildren(list);
  }
}

function itemOf({ number, text }, references) {
  const item = Object.assign(document.createElement("li"), { value: number, tabIndex: -1 });
  item.dataset.note = number;
  const back = Object.assign(document.createElement("button"), { type: "button", className: "note-back", textContent: "↩" });
  back.setAttribute("aria-label", t("chat.footnote.back", { number }));
  item.append(elementsOf(htmlOf(tokensOf(text, references))));
  (item.querySelector(":scope > p:last-child") ?? item).append(" ", back);
  return item;
}

/** A click on the number of a note, or on the way back. */
export function followNote(root, target) {
  const number = target.closest(".note-ref")?.textContent;
  if (number) return arrive(root.querySelector(`.footnotes li[data-note="${number}"]`));
  const item = target.closest(".note-back")?.closest("li");
  if (item) arrive([...root.querySelectorAll(".note-ref")].find((one) => one.textContent === item.dataset.note && !item.contains(one)));
}

function arrive(element) {
  element?.scrollIntoView({ block: "nearest" });
  element?.focus({ preventScroll: true });
}
