/** All goods that the buyer holds or held. */

import { Icon, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { account, isOpen } from "../../market/account.js";
import { SignInNote } from "../../market/sign_in_note.js";
import { marketJson } from "../../market/market_calls.js";
import { productHash } from "../address/place.js";
import { HoldState } from "./hold_box.js";
import { holds, readHolds, release, watchHolds } from "./holds.js";

export function HoldsPage() {
  const [names, setNames] = useState({});
  const [error, setError] = useState("");
  const who = account.value;
  const attempt = (work) => work().catch((fault) => setError(fault.message));
  useEffect(() => { if (who || isOpen) attempt(readHolds); }, [who]);
  useEffect(watchHolds, []);
  const ids = [...new Set((holds.value ?? []).map((one) => one.product_id))].join();
  useEffect(() => {
    if (ids) attempt(async () => setNames(Object.fromEntries((await marketJson(`api/products/lookup?ids=${ids}`)).items.map((one) => [one.id, one.name]))));
  }, [ids]);
  if (who === null && !isOpen) return html`<${SignInNote} icon="package" title=${t("shop.holds")} about=${t("shop.holds.sign.in")} />`;
  return html`<section class="stack"><h2>${t("shop.holds")}</h2>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${holds.value && !holds.value.length && html`<div class="nothing"><${Icon} name="package" /><p class="soft">${t("shop.holds.none")}</p><a class="button" href="#/">${t("shop.back")}</a></div>`}
    ${(holds.value ?? []).map((one) => html`<article class="card stack" key=${one.id}><h3><a href=${productHash(one.product_id)}>${names[one.product_id] ?? t("shop.product.number", { number: one.product_id })}</a></h3>
      <${HoldState} hold=${one} onRelease=${() => attempt(() => release(one.id))} /></article>`)}
  </section>`;
}
