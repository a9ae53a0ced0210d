/** The head of a part: what it is, what one does there. And what parts share to say when and by whom. */

import { html } from "../../app/view.js";
import { formatDay, formatTime } from "../../app/words.js";

export function PartHead({ title, about, children }) {
  return html`<header class="admin-head"><div class="grow"><h1>${title}</h1>${about && html`<p class="soft">${about}</p>`}</div>${children}</header>`;
}

export function Moment({ at }) {
  const date = new Date(at);
  return html`<time datetime=${at}>${formatDay(date)}, ${formatTime(date)}</time>`;
}
