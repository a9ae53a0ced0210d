/** What can be done with the goods that are chosen. */

import { html, useState } from "../../app/view.js";
import { counted, formatNumber, t } from "../../app/words.js";
import { Button, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { setOffered } from "./bulk_changes.js";
import { BulkDialog } from "./bulk_dialog.js";
import { chooseAllFound, chosen, goods, MAX_CHOSEN } from "./goods_list.js";
import { MAX_VARIANTS } from "./variants.js";
import { VariantsDialog } from "./variants_dialog.js";

export function BulkBar() {
  const [isOpen, setOpen] = useState(false);
  const [isGrouping, setGrouping] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const number = chosen.value.size;
  if (!number && !isOpen && !isGrouping) return null;
  const attempt = async (work) => {
    setBusy(true);
    await work().catch((error) => toast(messageOf(error), "circle-alert"));
    setBusy(false);
  };
  const all = () => attempt(async () => { if (!(await chooseAllFound())) toast(t("goods.choose.most", { number: formatNumber(MAX_CHOSEN) }), "info"); });
  const offer = (isOffered) => attempt(() => setOffered([...chosen.value.values()], isOffered, (count) => counted(isOffered ? "goods.many.offered" : "goods.many.hidden", count)));
  const { total, isExact } = goods.value;
  return html`<div class="bulk-bar" role="region" aria-label=${t("goods.chosen")}>
    <strong class="numbers">${counted("goods.chosen.number", number)}</strong>
    ${(number < total || !isExact) && html`<${Button} small kind="quiet" disabled=${isBusy} onClick=${all}>${t("goods.choose.all", { number: isExact ? formatNumber(total) : t("goods.least", { number: formatNumber(total) }) })}<//>`}
    <div class="grow"></div>
    <${Button} kind="primary" icon="percent" disabled=${isBusy} onClick=${() => setOpen(true)}>${t("goods.bulk")}<//>
    <${Button} icon="eye" disabled=${isBusy} onClick=${() => offer(true)}>${t("goods.bulk.offer")}<//>
    <${Button} icon="eye-off" disabled=${isBusy} onClick=${() => offer(false)}>${t("goods.bulk.hide")}<//>
    <${Button} icon="layers" disabled=${isBusy || number > MAX_VARIANTS} onClick=${() => setGrouping(true)}>${t("goods.variants")}<//>
    <${Button} kind="quiet" icon="x" label=${t("goods.choose.none")} onClick=${() => { chosen.value = new Map(); }} />
    ${isOpen && html`<${BulkDialog} onClose=${() => setOpen(false)} />`}
    ${isGrouping && html`<${VariantsDialog} onClose=${() => setGrouping(false)} />`}
  </div>`;
}
