/** At the foot of the page: what was changed last, and the button that undoes it. Ctrl+Z does the same outside of fields. */

import { html, useEffect } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon } from "../../design/components.js";
import { canUndo, closeUndoBar, lastChange, undoLast } from "./undoing.js";

const ICONS = { done: "check", undone: "undo-2", failed: "circle-alert" };

export function UndoBar() {
  useEffect(() => {
    const onKey = (event) => {
      const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "z";
      if (!isUndo || event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
      event.preventDefault();
      undoLast();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const last = lastChange.value;
  return html`<div class="undo-place" role="status">${last && html`<div class="undo-bar is-${last.state}"><${Icon} name=${ICONS[last.state]} /><span class="grow">${last.text}${last.message && html`<br />${t("goods.not.undone", { why: last.message })}`}</span>
    ${canUndo.value && last.state !== "failed" && html`<${Button} small icon="undo-2" onClick=${undoLast}>${t("goods.undo")}<//>`}<${Button} small kind="quiet" icon="x" label=${t("close")} onClick=${closeUndoBar} /></div>`}</div>`;
}
