/** What buyers hold: those that wait for an answer first, then those that are accepted, and what was. */

import { html, useLayoutEffect, useState } from "../../app/view.js";
import { counted, t } from "../../app/words.js";
import { Button, Icon, Note, Tabs } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { HoldCard } from "./hold_card.js";
import { accepted, fault, open, past, readOpen, readPast, waiting } from "./holds.js";
import { RefuseDialog } from "./refuse_dialog.js";

const STATUS = { sold: "committed", all: null };

export function HoldsPart() {
  const [tab, setTab] = useState("open");
  const [refused, setRefused] = useState(null);
  const tabs = ["open", "sold", "all"].map((id) => ({ id, label: t(`holds.tab.${id}`) }));
  return html`<h1>${t("desk.holds")}</h1>
    <${Tabs} label=${t("desk.holds")} tabs=${tabs} selected=${tab} onSelect=${setTab} />
    ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault.value)}</span><${Button} small icon="refresh-cw" onClick=${() => (tab === "open" ? readOpen() : readPast(STATUS[tab]))}>${t("desk.again")}<//></div><//>`}
    <div class="stack" role="tabpanel" id="panel-${tab}" aria-label=${t(`holds.tab.${tab}`)}>${tab === "open" ? html`<${OpenHolds} onRefuse=${setRefused} />` : html`<${PastHolds} status=${STATUS[tab]} key=${tab} onRefuse=${setRefused} />`}</div>
    ${refused && html`<${RefuseDialog} hold=${refused} onClose=${() => setRefused(null)} />`}`;
}

function OpenHolds({ onRefuse }) {
  if (open.value === undefined) return fault.value ? null : html`<p class="soft" role="status">${t("desk.loading")}</p>`;
  const groups = [["waiting", waiting.value], ["accepted", accepted.value]].filter(([, found]) => found.length);
  return html`<p class="visually-hidden" role="status">${counted("holds.waiting.number", waiting.value.length)}</p>
    ${!groups.length && html`<div class="empty"><${Icon} name="inbox" /><h2>${t("holds.none")}</h2><p class="soft">${t("holds.none.how")}</p></div>`}
    ${groups.map(([name, found]) => html`<section class="stack" key=${name}><h2>${t(`holds.group.${name}`)} <span class="badge">${found.length}</span></h2>
      <div class="hold-list">${found.map((one) => html`<${HoldCard} key=${one.id} hold=${one} onRefuse=${onRefuse} />`)}</div></section>`)}`;
}

function PastHolds({ status, onRefuse }) {
  useLayoutEffect(() => {
    past.value = null;
    readPast(status);
  }, []);
  if (!past.value) return fault.value ? null : html`<p class="soft" role="status">${t("desk.loading")}</p>`;
  const { items, hasMore } = past.value;
  if (!items.length) return html`<div class="empty"><${Icon} name="history" /><h2>${t("holds.past.none")}</h2></div>`;
  return html`<h2 class="visually-hidden">${t(status ? "holds.tab.sold" : "holds.tab.all")}</h2>
    <div class="hold-list">${items.map((one) => html`<${HoldCard} key=${one.id} hold=${one} onRefuse=${onRefuse} />`)}</div>
    ${hasMore && html`<div><${Button} icon="chevron-down" onClick=${() => readPast(status, true)}>${t("desk.more")}<//></div>`}`;
}
