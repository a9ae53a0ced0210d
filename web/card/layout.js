/** The frame of the page. */

import { html, useEffect } from "../app/view.js";
import { t } from "../app/words.js";
import { TopBar } from "../design/shell.js";

export function CardPage() {
  useEffect(() => { document.title = t("page.card"); }, []);
  return html`<div class="page"><a class="skip-link" href="#content">${t("skip.to.content")}</a><${TopBar} current="card" />
    <main id="content" class="card-page" tabindex="-1"><h1>${t("page.card")}</h1></main>
  </div>`;
}
