/** What buyers ask the shop: the talks that wait for an answer first, and the one that the address names. */

import { addressOf } from "../../app/addresses.js";
import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Tabs } from "../../design/components.js";
import { openTalk } from "../../market/talks/talk_calls.js";
import { OpenTalk } from "../../market/talks/open_talk.js";
import { TalkList } from "../../market/talks/talk_list.js";
import { allTalks, readAll, readWaiting, waitingTalks } from "./shop_talks.js";

const TABS = ["waiting", "all"];
const nameOf = (talk) => talk.buyer_name ?? t("talk.buyer.unknown");
const linkOf = (talk) => (talk.order_id ? "#/orders" : `${addressOf("shop")}#/p/${talk.product_id}`);

/** `talkId` is the open one; null while there is none. */
export function MessagesPart({ shop, talkId: id }) {
  const [tab, setTab] = useState("waiting");
  const shown = openTalk.value;
  // What was written or read in the open talk shows in the lists.
  useEffect(() => {
    readWaiting(shop.id);
    if (tab === "all") readAll(shop.id);
  }, [tab, id, shown?.num_messages, shown?.num_unread]);
  return html`<h1>${t("desk.messages")}</h1>
    <${Tabs} label=${t("desk.messages")} tabs=${TABS.map((one) => ({ id: one, label: t(`talk.tab.${one}`) }))} selected=${tab} onSelect=${setTab} />
    <div class=${id ? "talks is-open" : "talks"} role="tabpanel" id="panel-${tab}" aria-label=${t(`talk.tab.${tab}`)}>
      <div class="talks-list"><h2 class="visually-hidden">${t(`talk.tab.${tab}`)}</h2><${TalkList} list=${tab === "all" ? allTalks : waitingTalks} nameOf=${nameOf} current=${id} none=${t(tab === "all" ? "talks.desk.none" : "talks.desk.none.waiting")} how=${t("talks.desk.how")} /></div>
      ${id && html`<${OpenTalk} id=${id} nameOf=${nameOf} linkOf=${linkOf} />`}
    </div>`;
}
