/**
 * The table of goods as a grid of ARIA: one cell is in the order of Tab, arrows move between cells. Enter, F2 or typing edits; Enter, Tab and
 * leaving write, Escape does not.
 */

import { html, signal, useLayoutEffect, useRef } from "../../app/view.js";
import { addressOf } from "../../app/addresses.js";
import { t } from "../../app/words.js";
import { Icon, Menu, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { TypedCell } from "./cell.js";
import { editing, keyOf, unsaved, writeCell } from "./cell_states.js";
import { COLUMNS, isTyped } from "./columns.js";
import { ask, asked, choose, chosen, goods, isLoading, PAGE, pageNumber } from "./goods_list.js";
import { deleteProduct } from "./product_changes.js";

/** Where the focus is, or was last. */
const place = signal({ row: 1, column: 2 });
const isCoarse = matchMedia("(pointer: coarse)");

/** `onDetails(product)`, `onPictures(product)` and `onPromotion(product)` open their dialogs. */
export function GoodsGrid({ onDetails, onPictures, onPromotion }) {
  const ref = useRef(null);
  const { items, total } = goods.value;
  const goTo = (row, column) => {
    const next = { row: Math.min(items.length, Math.max(1, row)), column: Math.min(COLUMNS.length - 1, Math.max(0, column)) };
    place.value = next;
    // The cell is drawn anew first: it may have been an editor.
    queueMicrotask(() => focusAt(ref.current, next));
  };
  const edit = (row, column, typed) => {
    const product = items[row - 1], { id } = COLUMNS[column];
    const key = keyOf(product.id, id);
    if (unsaved.value.get(key)?.state === "saving") return;
    const text = typed ?? unsaved.value.get(key)?.value ?? product[id] ?? "";
    editing.value = { key, text: String(text), selects: typed === undefined };
  };
  const onKey = (event) => {
    const at = atOf(event.target);
    if (!at) return;
    const { row, column } = at;
    const moved = moveOf(event, row, column, items.length);
    if (moved) {
      event.preventDefault();
      goTo(...moved);
    } else if (isTyped(COLUMNS[column]) && (event.key === "Enter" || event.key === "F2" || isText(event))) {
      if (event.target.closest("button")) return;
      event.preventDefault();
      edit(row, column, isText(event) && COLUMNS[column].kind !== "choice" ? event.key : undefined);
    }
  };
  // A click chooses a cell, one more edits it; a finger edits at once.
  const lastClicked = useRef(null);
  const onClick = (event) => {
    const at = atOf(event.target);
    if (!at || event.target.closest("button, input, select")) return;
    const cell = `${at.row}.${at.column}`;
    if (isTyped(COLUMNS[at.column]) && (isCoarse.matches || lastClicked.current === cell)) edit(at.row, at.column);
    lastClicked.current = cell;
  };
  const leave = (row, column) => (step) => {
    if (!step) return goTo(row, column);
    const next = nextTyped(row, column, step, items.length);
    if (!next) return goTo(row, column);
    place.value = next;
    edit(next.row, next.column);
  };
  const current = Math.min(place.value.row, items.length);
  const focusable = (row, column) => ({ "data-at": `${row}.${column}`, tabindex: current === row && place.value.column === column ? 0 : -1, onFocus: () => { place.value = { row, column }; } });
  return html`<div class="goods-grid" role="grid" aria-label=${t("desk.goods")} aria-multiselectable="true" aria-rowcount=${total === null ? -1 : total + 1} aria-busy=${isLoading.value} ref=${ref} onKeyDown=${onKey} onClick=${onClick}>
    <${HeaderRow} items=${items} />
    ${items.map((product, at) => html`<${Row} key=${product.id} product=${product} row=${at + 1} index=${(pageNumber.value - 1) * PAGE + at + 2} focusable=${focusable} leave=${leave} onDetails=${onDetails} onPictures=${onPictures} onPromotion=${onPromotion} />`)}
  </div>`;
}

function HeaderRow({ items }) {
  const all = items.length > 0 && items.every((one) => chosen.value.has(one.id));
  return html`<div class="goods-row goods-header" role="row" aria-rowindex="1">${COLUMNS.map((column) => {
    if (column.kind === "choose") return html`<div role="columnheader" key=${column.id}><label class="goods-choose-all"><input type="checkbox" aria-label=${t("goods.choose.page")} checked=${all} onChange=${() => choose(items, !all)} /><span aria-hidden="true">${t("goods.choose.page")}</span></label></div>`;
    const [up, down] = column.sorts ?? (column.id === "name" ? ["name"] : []);
    const sorted = asked.value.sort === up ? "ascending" : asked.value.sort === down ? "descending" : undefined;
    const label = t(`goods.field.${column.id}`);
    const isHidden = column.kind === "picture" || column.kind === "actions";
    return html`<div role="columnheader" key=${column.id} class=${column.kind === "number" ? "number" : ""} aria-sort=${sorted}>${up
      ? html`<button type="button" class="goods-sort" onClick=${() => ask({ sort: sorted === "ascending" && down ? down : sorted ? "newest" : up })}>${label}${sorted && html`<${Icon} name=${sorted === "ascending" ? "arrow-up" : "arrow-down"} />`}</button>`
      : html`<span class=${isHidden ? "visually-hidden" : ""}>${label}</span>`}</div>`;
  })}</div>`;
}

function Row({ product, row, index, focusable, leave, onDetails, onPictures, onPromotion }) {
  const isChosen = chosen.value.has(product.id);
  return html`<div class=${isChosen ? "goods-row is-chosen" : "goods-row"} role="row" aria-rowindex=${index} aria-selected=${isChosen}>${COLUMNS.map((column, at) => {
    const shared = { key: column.id, product, focusable: focusable(row, at) };
    if (column.kind === "choose") return html`<${ChooseCell} ...${shared} isChosen=${isChosen} />`;
    if (column.kind === "picture") return html`<${PictureCell} ...${shared} onPictures=${onPictures} />`;
    if (column.kind === "switch") return html`<${SwitchCell} ...${shared} />`;
    if (column.kind === "actions") return html`<${ActionsCell} ...${shared} onDetails=${onDetails} onPictures=${onPictures} onPromotion=${onPromotion} />`;
    return html`<${TypedCell} ...${shared} column=${column} onLeave=${leave(row, at)} />`;
  })}</div>`;
}

function ChooseCell({ product, focusable, isChosen }) {
  return html`<div role="gridcell" class="goods-cell is-choose"><input type="checkbox" ...${focusable} aria-label=${t("goods.choose", { name: product.name })} checked=${isChosen} onChange=${(event) => choose([product], event.target.checked)} /></div>`;
}

function PictureCell({ product, focusable, onPictures }) {
  const first = product.picture ?? product.pictures?.[0];
  return html`<div role="gridcell" class="goods-cell is-picture"><button type="button" class="goods-picture" ...${focusable} aria-label=${t("goods.pictures.of", { name: product.name })} title=${t("goods.pictures")} onClick=${() => onPictures(product)}>
    ${first ? html`<img src=${addressOf(first.urls.small)} alt="" loading="lazy" decoding="async" />` : html`<${Icon} name="image-plus" />`}</button></div>`;
}

function SwitchCell({ product, focusable }) {
  const state = unsaved.value.get(keyOf(product.id, "is_available"));
  return html`<div role="gridcell" class="goods-cell is-is_available" data-label=${t("goods.field.is_available")}><span class="switch"><input type="checkbox" role="switch" ...${focusable} aria-label=${t("goods.sale.of", { name: product.name })}
    checked=${state ? state.value : product.is_available} aria-busy=${state?.state === "saving"} onChange=${(event) => writeCell(product, "is_available", event.target.checked)} /></span>
    ${state && state.state !== "saving" && html`<small class="goods-refusal" role="alert">${state.message}</small>`}</div>`;
}

function ActionsCell({ product, focusable, onDetails, onPictures, onPromotion }) {
  const remove = () => deleteProduct(product).catch((error) => toast(messageOf(error), "circle-alert"));
  const items = [
    { icon: "pencil", label: t("goods.details"), onSelect: () => onDetails(product) },
    { icon: "image", label: t("goods.pictures"), onSelect: () => onPictures(product) },
    { icon: "percent", label: t("goods.promotion"), onSelect: () => onPromotion(product) },
    { icon: "shopping-bag", label: t("goods.in.shop"), onSelect: () => location.assign(`${addressOf("shop")}#/p/${product.id}`) },
    { icon: "trash-2", label: t("delete"), danger: true, onSelect: remove },
  ];
  const ref = useRef(null);
  useLayoutEffect(() => { ref.current.querySelector("button").tabIndex = focusable.tabindex; });
  return html`<div role="gridcell" class="goods-cell is-actions" ref=${ref} ...${{ "data-at": focusable["data-at"], onFocus: focusable.onFocus }}><${Menu} icon="ellipsis" label=${t("goods.actions.of", { name: product.name })} items=${items} end /></div>`;
}

/** The cell that an event is of, unless it is inside an editor or a menu. */
function atOf(target) {
  if (target.closest(".is-edited, .menu-list")) return null;
  const found = target.closest("[data-at]")?.dataset.at ?? target.closest("[role=gridcell]")?.querySelector("[data-at]")?.dataset.at;
  if (!found) return null;
  const [row, column] = found.split(".").map(Number);
  return { row, column };
}

function focusAt(grid, { row, column }) {
  const cell = grid?.querySelector(`[data-at="${row}.${column}"]`);
  (cell?.matches(".is-actions") ? cell.querySelector("button") : cell)?.focus();
}

const isText = (event) => event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey && !event.altKey;

/** Where a key leads, as [row, column]; null for one that does not move. */
function moveOf(event, row, column, rows) {
  const last = COLUMNS.length - 1;
  if (event.altKey || event.metaKey) return null;
  switch (event.key) {
    case "ArrowDown": return [row + 1, column];
    case "ArrowUp": return [row - 1, column];
    case "ArrowRight": return [row, column + 1];
    case "ArrowLeft": return [row, column - 1];
    case "Home": return [event.ctrlKey ? 1 : row, 0];
    case "End": return [event.ctrlKey ? rows : row, last];
    case "PageDown": return [row + 10, column];
    case "PageUp": return [row - 10, column];
    default: return null;
  }
}

function nextTyped(row, column, step, rows) {
  for (let at = column + step, line = row; line >= 1 && line <= rows; at += step) {
    if (at < 0 || at >= COLUMNS.length) {
      line += step;
      at = step > 0 ? -1 : COLUMNS.length;
    } else if (isTyped(COLUMNS[at])) return { row: line, column: at };
  }
  return null;
}
