/** Shops that invite whoever is signed in to work for them. */

import { html, signal, useEffect, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { Button, Note, toast } from "../../design/components.js";
import { account } from "../../market/account.js";
import { marketJson, tokens } from "../../market/market_calls.js";
import { chooseShop, learnShops } from "../own_shop/own_shop.js";
import { messageOf } from "../own_shop/messages_of.js";

const invitations = signal([]);

async function readInvitations() {
  const isUser = tokens.value && account.value?.kind === "user";
  invitations.value = isUser ? await marketJson("api/users/me/invitations").catch(() => []) : [];
}

export function Invitations() {
  const [error, setError] = useState("");
  useEffect(() => { readInvitations(); }, [account.value]);
  const answer = async (one, isAccepted) => {
    setError("");
    const path = `api/users/me/invitations/${one.supplier_id}`;
    try {
      await marketJson(isAccepted ? `${path}/accept` : path, { method: isAccepted ? "POST" : "DELETE" });
      if (isAccepted) chooseShop(one.supplier_id);
      toast(t(isAccepted ? "invitations.accepted" : "invitations.declined", { name: one.business_name }));
      await readInvitations();
      if (isAccepted) await learnShops();
    } catch (fault) {
      setError(messageOf(fault));
      await readInvitations();
    }
  };
  if (!invitations.value.length && !error) return null;
  return html`<section class="stack" aria-label=${t("invitations")}>${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${invitations.value.map((one) => html`<${Note} kind="info" key=${one.supplier_id}><div class="row-wrap"><span class="grow"><strong>${t("invitations.of", { name: one.business_name, role: t(`members.role.${one.role}`) })}</strong><br /><small>${t("members.until", { day: formatDay(new Date(one.expires_at)) })}</small></span>
      <${Button} small kind="primary" icon="check" onClick=${() => answer(one, true)}>${t("invitations.accept")}<//><${Button} small onClick=${() => answer(one, false)}>${t("invitations.decline")}<//></div><//>`)}</section>`;
}

/** What somebody tells the owner who is to invite them. */
export function OwnNumber() {
  const who = account.value;
  if (!tokens.value || who?.kind !== "user") return null;
  return html`<p class="soft own-number">${t("invitations.number")} <strong class="numbers">${who.id}</strong></p>`;
}
