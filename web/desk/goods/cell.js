/** A cell of the table: what the product has, what is typed instead, and what the server says to that. */

import { html, useLayoutEffect, useRef } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Icon } from "../../design/components.js";
import { typedValue } from "./columns.js";
import { editing, forgetCell, keyOf, unsaved, writeCell, writeMine } from "./cell_states.js";
import { shownValue } from "./product_changes.js";

/** `focusable` has the attributes of the cell's place in the grid; `onLeave(step)` moves the focus after an edit: by 0, 1 or -1 cells. */
export function TypedCell({ product, column, focusable, onLeave }) {
  const key = keyOf(product.id, column.id);
  const edit = editing.value?.key === key ? editing.value : null;
  const state = unsaved.value.get(key);
  const value = state ? state.value : product[column.id];
  const isWrong = state?.state === "refused" || state?.state === "conflict";
  const classes = ["goods-cell", `is-${column.id}`, column.kind === "number" && "number", edit && "is-edited", state && `is-${state.state}`].filter(Boolean).join(" ");
  const label = `${t(`goods.field.${column.id}`)}: ${shownValue(column.id, value)}`;
  return html`<div role="gridcell" class=${classes} data-label=${t(`goods.field.${column.id}`)} aria-invalid=${isWrong ? "true" : undefined} aria-busy=${state?.state === "saving" ? "true" : undefined}
      ...${edit ? { "data-at": focusable["data-at"] } : { ...focusable, "aria-label": label }}>
    ${edit ? html`<${Editor} product=${product} column=${column} edit=${edit} onLeave=${onLeave} />` : html`<span class="goods-value">${shownValue(column.id, value)}</span>${column.id === "stock_quantity" && html`<${Reserved} product=${product} />`}${column.id === "name" && product.group_id && html`<small class="faint">${t("goods.variant")}</small>`}`}
    ${isWrong && html`<${Refusal} product=${product} column=${column} state=${state} />`}
  </div>`;
}

function Reserved({ product }) {
  const number = product.stock_quantity - product.available_quantity;
  return number > 0 && html`<small class="faint">${t("goods.reserved", { number })}</small>`;
}

function Editor({ product, column, edit, onLeave }) {
  const ref = useRef(null);
  // A field that is left by Enter, Tab or Escape loses the focus then: it must not write twice.
  const isDone = useRef(false);
  useLayoutEffect(() => {
    ref.current.focus();
    // What was typed goes on behind it.
    if (edit.selects) ref.current.select?.();
    else ref.current.setSelectionRange?.(edit.text.length, edit.text.length);
  }, []);
  const leave = (writes, step) => {
    if (isDone.current) return;
    isDone.current = true;
    const text = ref.current.value;
    editing.value = null;
    if (writes) writeCell(product, column.id, typedValue(column, text));
    else forgetCell(product.id, column.id);
    if (step !== null) onLeave(step);
  };
  const onKey = (event) => {
    event.stopPropagation();
    const step = { Enter: 0, Tab: event.shiftKey ? -1 : 1 }[event.key];
    if (step === undefined && event.key !== "Escape") return;
    event.preventDefault();
    leave(event.key !== "Escape", step ?? 0);
  };
  const shared = { ref, class: "goods-input", "aria-label": t(`goods.field.${column.id}`), onKeyDown: onKey, onBlur: () => leave(true, null) };
  if (column.kind === "choice") return html`<select ...${shared}>${column.values.map((value) => html`<option value=${value} selected=${value === edit.text}>${shownValue(column.id, value)}</option>`)}</select>`;
  return html`<input ...${shared} defaultValue=${edit.text} list=${column.list} inputmode=${column.kind === "number" ? "numeric" : undefined} autocomplete="off" spellcheck="false" />`;
}

/** What the server says, at the cell that it says it of. */
function Refusal({ product, column, state }) {
  const id = product.id, field = column.id;
  return html`<div class="goods-refusal" role="alert"><span><${Icon} name="circle-alert" /> ${state.message}</span>
    ${state.state === "conflict" && html`<span class="row-wrap"><${Button} small onClick=${() => forgetCell(id, field)}>${t("goods.conflict.theirs")}<//><${Button} small onClick=${() => writeMine(id, field)}>${t("goods.conflict.mine", { value: shownValue(field, state.value) })}<//></span>`}
    ${state.state === "refused" && html`<${Button} small kind="quiet" onClick=${() => forgetCell(id, field)}>${t("goods.refused.forget")}<//>`}</div>`;
}
