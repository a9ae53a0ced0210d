/** The frame: the parts beside, the one that the address names in the middle. */

import { html, useEffect } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Icon, Note } from "../design/components.js";
import { TopBar } from "../design/shell.js";
import { account, accountForm, isOpen } from "../market/account.js";
import { part, PARTS } from "./address.js";

const ICONS = {};
const VIEWS = {};

export function DeskPage() {
  useEffect(() => { document.title = t("page.desk"); }, []);
  return html`<div class="page"><a class="skip-link" href="#content" onClick=${skip}>${t("skip.to.content")}</a><${TopBar} current="desk" />
    <div class="desk-body">
      <nav class="desk-parts" aria-label=${t("page.desk")}>${PARTS.map((name) => html`<a class="desk-part" href=${`#/${name}`} aria-current=${name === part.value ? "page" : undefined}><${Icon} name=${ICONS[name]} /><span>${t(`desk.${name}`)}</span></a>`)}</nav>
      <main id="content" class="desk" tabindex="-1"><${Content} /></main>
    </div>
  </div>`;
}

function Content() {
  if (account.value === undefined) return null;
  if (!account.value && !isOpen) return html`<${Note} kind="info">${t("desk.sign.in")} <${Button} small icon="log-in" onClick=${() => { accountForm.value = "login"; }}>${t("account.login")}<//><//>`;
  const View = VIEWS[part.value];
  return View ? html`<${View} />` : html`<h1>${t("page.desk")}</h1>`;
}

/** The address belongs to the parts: the link moves the focus without changing it. */
function skip(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}
