/** Chooses one of the shop's goods by a part of its name or its SKU. */

import { html, useEffect, useState } from "../../app/view.js";
import { counted, t } from "../../app/words.js";
import { Field } from "../../design/components.js";
import { findGoods } from "./movements.js";

const PAUSE_MILLISECONDS = 250;

export function ProductPicker({ onChoose, autofocus = false }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState(null);
  const [error, setError] = useState("");
  useEffect(() => {
    if (!words.trim()) {
      setFound(null);
      return undefined;
    }
    let isOld = false;
    const timer = setTimeout(async () => {
      try {
        const goods = await findGoods(words.trim());
        if (!isOld) [setFound(goods), setError("")];
      } catch (fault) {
        if (!isOld) setError(fault.message);
      }
    }, PAUSE_MILLISECONDS);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [words]);
  return html`<div class="stack"><${Field} label=${t("stock.product")} help=${t("stock.product.help")} error=${error}>${(attributes) => html`<input class="input" type="search" autocomplete="off" autofocus=${autofocus} value=${words} onInput=${(event) => setWords(event.target.value)} ...${attributes} />`}<//>
    <p class="visually-hidden" role="status">${found ? counted("stock.found", found.length) : ""}</p>
    ${found && !found.length && html`<p class="soft">${t("stock.found.none")}</p>`}
    ${found?.length > 0 && html`<ul class="picker" aria-label=${t("stock.product")}>${found.map((one) => html`<li key=${one.id}><button type="button" class="menu-item" onClick=${() => onChoose(one)}><span class="grow">${one.name}${one.sku && html` <span class="faint mono">${one.sku}</span>`}</span><span class="soft numbers">${counted("stock.left", one.stock_quantity)}</span></button></li>`)}</ul>`}
  </div>`;
}
