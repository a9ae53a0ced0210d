/** The shop itself: what it says of itself, when it is open, who works for it, what is told of it, and its programs. */

import { html, useLayoutEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Note, Tabs } from "../../design/components.js";
import { account } from "../../market/account.js";
import { marketCall } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { BranchesPanel } from "./branches_panel.js";
import { CardPanel } from "./card_panel.js";
import { HoursForm } from "./hours_form.js";
import { OwnNumber } from "./invitations.js";
import { MembersPanel } from "./members_panel.js";
import { NoticesPanel } from "./notices_panel.js";
import { learnShops } from "../own_shop/own_shop.js";
import { OrderRulesForm } from "./order_rules_form.js";
import { fault, profile, readProfile } from "./own_profile.js";
import { PaymentsPanel } from "./payments_panel.js";
import { ProfileForm } from "./profile_form.js";
import { TokensPanel } from "./tokens_panel.js";

const PANELS = { profile: ProfileForm, hours: HoursForm, branches: BranchesPanel, orders: OrderRulesForm, payments: PaymentsPanel, members: MembersPanel, notices: NoticesPanel, card: CardPanel, tokens: TokensPanel };

export function ShopPart({ shop }) {
  const [tab, setTab] = useState("profile");
  useLayoutEffect(() => {
    profile.value = null;
    readProfile(shop.id);
  }, []);
  const tabs = Object.keys(PANELS).map((id) => ({ id, label: t(`own.tab.${id}`) }));
  const Panel = PANELS[tab];
  return html`<div class="row-wrap"><h1 class="grow">${t("desk.shop")}</h1><${OwnNumber} /></div>
    ${shop.role !== "owner" ? html`<${Editor} shop=${shop} />` : html`<${Tabs} label=${t("desk.shop")} tabs=${tabs} selected=${tab} onSelect=${setTab} />
      <div role="tabpanel" id="panel-${tab}" aria-label=${t(`own.tab.${tab}`)}>
        ${fault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault.value)}</span><${Button} small icon="refresh-cw" onClick=${() => readProfile(shop.id)}>${t("desk.again")}<//></div><//>`}
        ${!profile.value && !fault.value && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
        ${profile.value && html`<${Panel} key=${tab} shop=${shop} />`}</div>`}`;
}

/** Editors change nothing of the shop, but may leave it. */
function Editor({ shop }) {
  const [isLeaving, setLeaving] = useState(false);
  const [error, setError] = useState("");
  const leave = async () => {
    setLeaving(false);
    try {
      await marketCall(`api/suppliers/${shop.id}/members/${account.value.id}`, { method: "DELETE" });
      await learnShops();
    } catch (fault) {
      setError(messageOf(fault));
    }
  };
  return html`<${Note} kind="info">${t("own.editor")}<//>${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <div><${Button} icon="log-out" onClick=${() => setLeaving(true)}>${t("own.leave")}<//></div>
    ${isLeaving && html`<${Dialog} title=${t("own.leave")} onClose=${() => setLeaving(false)} footer=${html`<${Button} kind="quiet" onClick=${() => setLeaving(false)}>${t("cancel")}<//><${Button} kind="danger" icon="log-out" onClick=${leave}>${t("members.leave.do")}<//>`}><p>${t("members.leave.about")}</p><//>`}`;
}
