/** "2 / 3" with arrows: walks through the branches of a message. */

import { Button } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { messageOf, selectMessage, tree } from "../conversations/conversations.js";
import { siblingsOf } from "../conversations/tree.js";

export function Branches({ message }) {
  const { ids, at } = siblingsOf(tree.value, message);
  if (ids.length < 2) return null;
  const go = (step) => selectMessage(messageOf(ids[at + step]));
  return html`<span class="branches" role="group" aria-label=${t("chat.branches")}>
    <${Button} small kind="quiet" icon="chevron-left" label=${t("chat.branch.before")} disabled=${at === 0} onClick=${() => go(-1)} />
    <span class="numbers">${at + 1} / ${ids.length}</span>
    <${Button} small kind="quiet" icon="chevron-right" label=${t("chat.branch.after")} disabled=${at === ids.length - 1} onClick=${() => go(1)} />
  </span>`;
}
