/** The goods of the shop: found and filtered, edited in their cells, changed by many, undone. */

import { html, useLayoutEffect, useState } from "../../app/view.js";
import { counted, formatNumber, t } from "../../app/words.js";
import { Button, Icon, Note, toast } from "../../design/components.js";
import { categories, learnCategories } from "../../market/categories.js";
import { messageOf } from "../own_shop/messages_of.js";
import { BulkBar } from "./bulk_bar.js";
import { forgetCells } from "./cell_states.js";
import { DeletedGoods } from "./deleted_goods.js";
import { GoodsFilters } from "./goods_filters.js";
import { asked, fault, goods, hasNext, isLoading, load, nextPage, openGoods, pageNumber, previousPage } from "./goods_list.js";
import { GoodsGrid } from "./grid.js";
import { PicturesDialog } from "./pictures_dialog.js";
import { ProductDialog } from "./product_dialog.js";
import { PromotionDialog } from "./promotion_dialog.js";
import { UndoBar } from "./undo_bar.js";
import { forgetChanges } from "./undoing.js";

export function GoodsPart({ shop }) {
  const [dialog, setDialog] = useState(null);
  // Before anything is shown: what somebody types at once is not put away again.
  useLayoutEffect(() => {
    forgetChanges();
    forgetCells();
    openGoods(shop.id);
    learnCategories().catch(() => {});
  }, []);
  const close = () => setDialog(null);
  const isDeleted = asked.value.show === "deleted";
  return html`<div class="row-wrap"><h1 class="grow">${t("desk.goods")}</h1><${Button} kind="primary" icon="plus" onClick=${() => setDialog({ kind: "product" })}>${t("goods.new")}<//></div>
    <${GoodsFilters} />
    ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault.value)}</span><${Button} small icon="refresh-cw" onClick=${load}>${t("desk.again")}<//></div><//>`}
    ${!goods.value && !fault.value && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${goods.value && !isDeleted && html`<${BulkBar} /><${List} onDialog=${setDialog} />`}
    ${goods.value && isDeleted && html`<${DeletedGoods} />`}
    ${goods.value && html`<${Pages} />`}
    <datalist id="desk-categories">${categories().map(({ slug, name }) => html`<option value=${slug}>${name}</option>`)}</datalist>
    <${UndoBar} />
    ${dialog?.kind === "product" && html`<${ProductDialog} product=${dialog.product} onClose=${close} />`}
    ${dialog?.kind === "pictures" && html`<${PicturesDialog} product=${dialog.product} onClose=${close} />`}
    ${dialog?.kind === "promotion" && html`<${PromotionDialog} product=${dialog.product} shop=${shop} onClose=${close} />`}`;
}

function List({ onDialog }) {
  const { items, total, isExact } = goods.value;
  const { q, show, category } = asked.value;
  if (!items.length && pageNumber.value === 1) return html`<${Empty} isFiltered=${Boolean(q || category || show !== "all")} onNew=${() => onDialog({ kind: "product" })} />`;
  return html`<div class="row-wrap goods-head"><p class="grow soft" role="status">${isExact ? counted("goods.found", total) : t("goods.found.least", { number: formatNumber(total) })}</p><p class="goods-keys faint"><small><kbd class="kbd">Enter</kbd> ${t("goods.keys.edit")} · <kbd class="kbd">Esc</kbd> ${t("goods.keys.leave")} · <kbd class="kbd">Ctrl Z</kbd> ${t("goods.keys.undo")}</small></p></div>
    <${GoodsGrid} onDetails=${(product) => onDialog({ kind: "product", product })} onPictures=${(product) => onDialog({ kind: "pictures", product })}
      onPromotion=${(product) => onDialog({ kind: "promotion", product })} />`;
}

function Empty({ isFiltered, onNew }) {
  return html`<div class="empty"><${Icon} name="package" /><h2>${t(isFiltered ? "goods.none.found" : "goods.none")}</h2>
    ${!isFiltered && html`<p class="soft">${t("goods.none.how")}</p><div class="row-wrap"><${Button} kind="primary" icon="plus" onClick=${onNew}>${t("goods.new")}<//><a class="button" href="#/sheets"><${Icon} name="file-spreadsheet" />${t("desk.sheets")}</a></div>`}</div>`;
}

function Pages() {
  if (pageNumber.value === 1 && !hasNext.value) return null;
  const turn = (to) => () => to().then(() => document.getElementById("content").scrollIntoView()).catch((error) => toast(messageOf(error), "circle-alert"));
  return html`<nav class="row pages" aria-label=${t("goods.pages")}><${Button} icon="chevron-left" disabled=${pageNumber.value === 1 || isLoading.value} onClick=${turn(previousPage)}>${t("goods.pages.before")}<//>
    <span class="soft numbers">${t("goods.page", { number: pageNumber.value })}</span><${Button} disabled=${!hasNext.value || isLoading.value} onClick=${turn(nextPage)}>${t("goods.pages.next")}<${Icon} name="chevron-right" /><//></nav>`;
}
