/** A picture of a question or an answer that fills the screen. */

import { Dialog } from "../../design/components.js";
import { html, signal } from "../../app/view.js";
import { t } from "../../app/words.js";

/** What is shown so: `{ url, name }`. */
export const enlarged = signal(null);

export function EnlargedPicture() {
  if (!enlarged.value) return null;
  const close = () => { enlarged.value = null; };
  return html`<${Dialog} title=${enlarged.value.name || t("chat.picture")} wide onClose=${close}><img class="enlarged" src=${enlarged.value.url} alt=${enlarged.value.name} /><//>`;
}
