/** In place of a part that needs an account: what it is for, and the way in. */

import { html } from "../app/view.js";
import { t } from "../app/words.js";
import { Button, Icon } from "../design/components.js";
import { accountForm } from "./account.js";

export function SignInNote({ icon, title, about }) {
  return html`<section class="door"><${Icon} name=${icon} /><h2>${title}</h2><p class="soft">${about}</p>
    <${Button} kind="primary" icon="log-in" onClick=${() => { accountForm.value = "login"; }}>${t("account.login")}<//></section>`;
}
