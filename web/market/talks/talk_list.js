/** Talks as a list: with whom, about what, since when, and what is unread. */

import { html } from "../../app/view.js";
import { formatDay, formatTime, t } from "../../app/words.js";
import { Badge, Button, Icon, Note } from "../../design/components.js";

/** `list` of `talkList`; `nameOf` says with whom a talk is; `current` is the number of the open one. */
export function TalkList({ list, nameOf, current, none, how }) {
  const { found, fault } = list;
  return html`<div class="stack">
    ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${fault.value.message}</span><${Button} small icon="refresh-cw" onClick=${list.readAnew}>${t("talk.again")}<//></div><//>`}
    ${!found.value && !fault.value && html`<p class="soft" role="status">${t("talk.loading")}</p>`}
    ${found.value && !found.value.items.length && html`<div class="nothing"><${Icon} name="message-circle" /><h3>${none}</h3><p class="soft">${how}</p></div>`}
    ${Boolean(found.value?.items.length) && html`<ul class="talk-list" aria-label=${t("talks")}>${found.value.items.map((one) => html`<li key=${one.id}><a class="talk-row" href=${talkHash(one.id)} aria-current=${one.id === current ? "true" : undefined}>
      <span class="grow"><strong class="one-line">${nameOf(one)}</strong><span class="one-line soft"><${Icon} name=${one.order_id ? "shopping-bag" : "tag"} /> ${aboutOf(one)}</span></span>
      <span class="talk-row-end"><time class="faint numbers" datetime=${one.last_at}>${shortMoment(one.last_at)}</time>${one.num_unread > 0 && html`<${Badge} kind="accent"><span aria-hidden="true">${one.num_unread}</span><span class="visually-hidden">${t("talk.unread", { number: one.num_unread })}</span><//>`}</span></a></li>`)}</ul>`}
    ${found.value?.hasMore && html`<div><${Button} icon="chevron-down" onClick=${list.readMore}>${t("talk.more")}<//></div>`}
  </div>`;
}

export const talkHash = (id) => `#/messages/${id}`;
export const aboutOf = (talk) => (talk.order_id ? t("talk.about.order", { number: talk.about }) : talk.about);

/** The time of today, the day of others. */
function shortMoment(text) {
  const date = new Date(text);
  return date.toDateString() === new Date().toDateString() ? formatTime(date) : formatDay(date);
}
