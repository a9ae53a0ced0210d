/** What the buyer wants to hear of a product: that its price falls, or that it is back. */

import { Button, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
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
  const toggle = async () => {
    if (!requireAccount()) return;
    setError("");
    try {
      if (mine) {
        await marketJson(`api/alerts/${mine.id}`, { method: "DELETE" });
        setAlerts(alerts.filter((one) => one.id !== mine.id));
      } else {
        const made = await marketJson(`api/products/${product.id}/alerts`, { method: "POST", json: { kind } });
        setAlerts([...alerts, made]);
      }
    } catch (fault) {
      setError(fault.message);
    }
  };
  return html`${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Button} icon="bell" aria-pressed=${Boolean(mine)} onClick=${toggle}>${t(`shop.tell.${kind}`)}<//>`;
}
