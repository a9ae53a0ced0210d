/** What the buyer and shops write to each other: the talks, and the one that the address names. */

import { html, useEffect, useLayoutEffect } from "../../app/view.js";
import { t } from "../../app/words.js";
import { account, isOpen } from "../../market/account.js";
import { openTalk } from "../../market/talks/talk_calls.js";
import { OpenTalk } from "../../market/talks/open_talk.js";
import { TalkList } from "../../market/talks/talk_list.js";
import { SignInNote } from "../../market/sign_in_note.js";
import { ownTalks } from "./own_talks.js";
import { productHash } from "../address/place.js";

const nameOf = (talk) => talk.shop_name;
const linkOf = (talk) => (talk.order_id ? "#/orders" : productHash(talk.product_id));

export function TalksPage({ id }) {
  const who = account.value;
  const shown = openTalk.value;
  useLayoutEffect(() => ownTalks.forget, [who?.id]); // who signs in next sees nothing of them
  // What was written or read in the open talk shows in the list.
  useEffect(() => { if (who || isOpen) ownTalks.read("api/talks"); }, [who, id, shown?.num_messages, shown?.num_unread]);
  if (who === null && !isOpen) return html`<${SignInNote} icon="message-circle" title=${t("talks")} about=${t("talk.sign.in")} />`;
  return html`<section class="stack"><h2>${t("talks")}</h2>
    <div class=${id ? "talks is-open" : "talks"}><div class="talks-list"><${TalkList} list=${ownTalks} nameOf=${nameOf} current=${id} none=${t("talks.none")} how=${t("talks.none.how")} /></div>
      ${id && (who || isOpen) && html`<${OpenTalk} id=${id} nameOf=${nameOf} linkOf=${linkOf} key=${who?.id} />`}</div>
  </section>`;
}
