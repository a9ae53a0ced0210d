/** How an accepted order is paid: the shop's account, its QRIS code with the amount, or the page of a provider. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatRupiah, t } from "../../app/words.js";
import { Button, CopyButton, Icon, Note } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { momentOf } from "../../market/orders/order_card.js";

export function PayBox({ order }) {
  const [payment, setPayment] = useState(null);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const path = `api/orders/${order.id}/payment`;
  useEffect(() => { marketJson(path).then(setPayment, (fault) => setError(fault.message)); }, [order.version]);
  const begin = async () => {
    setBusy(true);
    setError("");
    try {
      setPayment(await marketJson(path, { method: "POST" }));
    } catch (fault) {
      setError(fault.message);
    }
    setBusy(false);
  };
  if (!payment) return error ? html`<${Note} kind="bad" role="alert">${error}<//>` : null;
  const isBegun = payment.transfer || payment.qris || payment.page;
  return html`<section class="pay-box stack" aria-label=${t("pay.how")} aria-busy=${isBusy}>
    <p class="row"><strong class="grow">${t("pay.amount")}</strong><strong class="numbers">${formatRupiah(payment.amount)}</strong></p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${payment.status === "differs" && html`<${Note} kind="warn">${t("pay.differs", { price: formatRupiah(payment.paid_amount ?? 0) })}<//>`}
    ${payment.transfer && html`<${Transfer} account=${payment.transfer} number=${order.number} />`}
    ${payment.qris && html`<${Qris} code=${payment.qris} />`}
    ${payment.page && html`<div class="stack"><div><a class="button primary" href=${payment.page.url} target="_blank" rel="noopener noreferrer"><${Icon} name="external-link" />${t("pay.page")}</a></div><p class="faint"><small>${t("pay.page.until", { moment: momentOf(payment.page.expires_at) })}</small></p></div>`}
    ${(!isBegun || payment.status === "expired" || payment.status === "failed") && html`<div><${Button} kind="primary" icon="credit-card" disabled=${isBusy} onClick=${begin}>${t(payment.status === "creating" ? "pay.ask.again" : "pay.do")}<//></div>`}
  </section>`;
}

function Transfer({ account, number }) {
  const row = (name, text, isCopied = false) => html`<div><dt>${t(`pay.${name}`)}</dt><dd>${text}${isCopied && html` <${CopyButton} text=${text} label=${t("pay.copy", { name: t(`pay.${name}`) })} />`}</dd></div>`;
  return html`<dl class="pay-account">${row("bank", account.bank_name)}${row("account", account.account_number, true)}${row("holder", account.account_holder)}${row("purpose", number, true)}</dl><p class="faint"><small>${t("pay.transfer.about")}</small></p>`;
}

/** The picture is drawn by the server; as a file of its own it runs no script. */
function Qris({ code }) {
  return html`<div class="pay-qris"><img src=${`data:image/svg+xml;charset=utf-8,${encodeURIComponent(code.svg)}`} alt=${t("pay.qris.of", { name: code.merchant_name })} />
    <p><strong>${code.merchant_name}</strong><br /><span class="soft">${code.merchant_city}</span></p></div><p class="faint"><small>${t("pay.qris.about")}</small></p>`;
}
