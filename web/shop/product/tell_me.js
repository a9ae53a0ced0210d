/** What the buyer wants to hear of a product: that its price falls, that it costs so much or less, or that it is back. */

import { Button, Field, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatRupiah, t } from "../../app/words.js";
import { account, isOpen, requireAccount } from "../../market/account.js";
import { marketJson, tokens } from "../../market/market_calls.js";

export function TellMe({ product }) {
  const [alerts, setAlerts] = useState([]);
  const [error, setError] = useState("");
  const who = account.value;
  const mayAsk = tokens.value && who && who.kind !== "supplier";
  useEffect(() => {
    setAlerts([]);
    if (mayAsk) marketJson(`api/alerts?product_id=${product.id}`).then(setAlerts, () => {});
  }, [who, product.id]);
  // On an open server news are of whoever is signed in, too.
  if (who?.kind === "supplier" || (isOpen && !tokens.value)) return null;
  const kind = product.available_quantity > 0 ? "fall" : "stock";
  const mine = alerts.find((one) => one.kind === kind);
  const attempt = async (work) => {
    if (!requireAccount()) return;
    setError("");
    try {
      setAlerts(await work());
    } catch (fault) {
      setError(fault.message);
    }
  };
  const without = async (alert) => {
    await marketJson(`api/alerts/${alert.id}`, { method: "DELETE" });
    return alerts.filter((one) => one.id !== alert.id);
  };
  const withNew = async (json) => {
    const made = await marketJson(`api/products/${product.id}/alerts`, { method: "POST", json });
    return [...alerts.filter((one) => one.kind !== made.kind), made]; // another one of a kind takes its place
  };
  return html`${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Button} icon="bell" aria-pressed=${Boolean(mine)} onClick=${() => attempt(() => (mine ? without(mine) : withNew({ kind })))}>${t(`shop.tell.${kind}`)}<//>
    <${PriceWanted} alert=${alerts.find((one) => one.kind === "below")} onWant=${(max_price) => attempt(() => withNew({ kind: "below", max_price }))} onForget=${(alert) => attempt(() => without(alert))} />`;
}

/** `alert` is the one that is set; another price takes its place. */
function PriceWanted({ alert, onWant, onForget }) {
  const [price, setPrice] = useState("");
  const rupiah = Number(price.replace(/\D/g, ""));
  const submit = async (event) => {
    event.preventDefault();
    if (rupiah) await onWant(rupiah);
  };
  useEffect(() => { setPrice(""); }, [alert?.id, alert?.max_price]);
  return html`<details class="tell-below"><summary>${t("shop.tell.below")}</summary>
    <form class="price-wanted" onSubmit=${submit}><${Field} label=${t("shop.tell.below.price")}>${(attributes) => html`<input class="input numbers" inputmode="numeric" maxlength="20" required value=${price} onInput=${(event) => setPrice(event.target.value)} ...${attributes} />`}<//><${Button} icon="bell" type="submit" disabled=${!rupiah}>${t("shop.tell.below.do")}<//></form>
    <div role="status">${alert && html`<p class="row-wrap"><span class="grow">${t("shop.tell.below.set", { price: formatRupiah(alert.max_price) })}</span><${Button} small kind="quiet" icon="trash-2" onClick=${() => onForget(alert)}>${t("delete")}<//></p>`}</div>
  </details>`;
}
