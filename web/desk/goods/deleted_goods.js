/** What was deleted, and can be restored. */

import { html } from "../../app/view.js";
import { formatDay, formatNumber, formatRupiah, t } from "../../app/words.js";
import { Button, Icon, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { goods } from "./goods_list.js";
import { restoreProduct } from "./product_changes.js";

export function DeletedGoods() {
  const { items } = goods.value;
  if (!items.length) return html`<div class="empty"><${Icon} name="trash-2" /><h2>${t("goods.deleted.none")}</h2></div>`;
  const restore = (product) => restoreProduct(product).catch((error) => toast(messageOf(error), "circle-alert"));
  return html`<ul class="deleted-goods">${items.map((product) => html`<li key=${product.id} class="card row-wrap"><div class="grow"><strong>${product.name}</strong>
    <p class="soft numbers"><small>${formatRupiah(product.price)} · ${t("goods.field.stock_quantity")} ${formatNumber(product.stock_quantity)} · ${t("goods.deleted.at", { day: formatDay(new Date(product.deleted_at)) })}</small></p></div>
    <${Button} icon="rotate-ccw" onClick=${() => restore(product)} aria-label=${t("goods.restore.of", { name: product.name })}>${t("goods.restore")}<//></li>`)}</ul>`;
}
