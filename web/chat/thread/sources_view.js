/** Under an answer: the pages that it cites, by their numbers in the text. */

import { html } from "../../app/view.js";
import { t } from "../../app/words.js";

export function Sources({ sources }) {
  if (!sources.length) return null;
  return html`<section class="sources" aria-label=${t("chat.sources")}>
    <h3 aria-hidden="true">${t("chat.sources")}</h3>
    <ol>${sources.map((one) => html`<li key=${one.url}><a href=${one.url} target="_blank" rel="noopener noreferrer nofollow" title=${one.url}>
      <span class="source-number numbers">${one.number}</span><span class="source-host one-line">${one.host}</span>${one.title && html`<span class="source-title one-line">${one.title}</span>`}</a></li>`)}</ol>
  </section>`;
}
