/** Who works for the shop, and who is invited to. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { Badge, Button, Dialog, Field, Icon, Note, toast } from "../../design/components.js";
import { account } from "../../market/account.js";
import { marketJson } from "../../market/market_calls.js";
import { learnShops } from "../own_shop/own_shop.js";
import { messageOf } from "../own_shop/messages_of.js";

const ROLES = ["editor", "owner"];

export function MembersPanel({ shop }) {
  const [members, setMembers] = useState(null);
  const [error, setError] = useState("");
  const [removed, setRemoved] = useState(null);
  const path = `api/suppliers/${shop.id}/members`;
  const attempt = async (work, said) => {
    setError("");
    try {
      await work();
      if (said) toast(said);
      return true;
    } catch (fault) {
      setError(messageOf(fault));
      return false;
    }
  };
  const read = () => attempt(async () => setMembers(await marketJson(path)));
  useEffect(() => { read(); }, []);
  const invite = (userId, role) => attempt(async () => {
    const made = await marketJson(path, { method: "POST", json: { user_id: userId, role } });
    setMembers(await marketJson(path));
    toast(t(made.status === "invited" ? "members.invited.done" : "members.changed"));
  });
  const remove = (member) => attempt(async () => {
    const works = members.find((one) => one.user_id === member.user_id && one.status === "member");
    // To delete the invitation of a member would remove the member: the role that it has withdraws it, too.
    if (member.status === "invited" && works) await marketJson(path, { method: "POST", json: { user_id: works.user_id, role: works.role } });
    else await marketJson(`${path}/${member.user_id}`, { method: "DELETE" });
    setRemoved(null);
    if (isMe(member)) await learnShops();
    else setMembers(await marketJson(path));
  }, t(member.status === "invited" ? "members.withdrawn" : "members.removed"));
  return html`<div class="stack own-panel">${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <section class="card"><header role="presentation"><${Icon} name="users" /><h2>${t("members")}</h2></header>
      ${!members && !error && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
      ${members && !members.length && html`<p class="soft">${t("members.none")}</p>`}
      <ul class="people">${members?.map((one) => html`<${Member} key=${`${one.status} ${one.user_id}`} member=${one} onRole=${(role) => invite(one.user_id, role)} onRemove=${() => setRemoved(one)} />`)}</ul></section>
    <${InviteForm} onInvite=${invite} />
    ${removed && html`<${RemoveDialog} member=${removed} onRemove=${() => remove(removed).then((done) => done || setRemoved(null))} onClose=${() => setRemoved(null)} />`}
  </div>`;
}

const isMe = (member) => account.value?.kind === "user" && account.value.id === member.user_id;
const nameOf = (member) => member.name ?? t("members.number", { number: member.user_id });

function Member({ member, onRole, onRemove }) {
  const isInvited = member.status === "invited";
  return html`<li class="person"><span class="grow"><span><strong>${nameOf(member)}</strong>${isMe(member) && html` <span class="faint">(${t("members.you")})</span>`}</span>
      <span class="faint"><small>${isInvited ? t("members.until", { day: formatDay(new Date(member.expires_at)) }) : t("members.since", { day: formatDay(new Date(member.created_at)) })}</small></span></span>
    ${isInvited ? html`<${Badge} kind="warn" icon="mail">${t("members.invited", { role: t(`members.role.${member.role}`) })}<//>`
      : html`<select class="select person-role" aria-label=${t("members.role.of", { name: nameOf(member) })} value=${member.role} onChange=${(event) => { onRole(event.target.value); event.target.value = member.role; }}>${ROLES.map((role) => html`<option value=${role} selected=${role === member.role}>${t(`members.role.${role}`)}</option>`)}</select>`}
    <${Button} small kind="quiet" icon=${isInvited ? "x" : "trash-2"} label=${t(isInvited ? "members.withdraw" : "members.remove", { name: nameOf(member) })} onClick=${onRemove} /></li>`;
}

function InviteForm({ onInvite }) {
  const [number, setNumber] = useState("");
  const [role, setRole] = useState("editor");
  const submit = async (event) => {
    event.preventDefault();
    if (await onInvite(Number(number), role)) setNumber("");
  };
  return html`<form class="card stack" onSubmit=${submit}><h2>${t("members.invite")}</h2><p class="soft">${t("members.invite.about")}</p>
    <div class="two"><${Field} label=${t("members.user")} help=${t("members.user.help")}>${(attributes) => html`<input class="input numbers" inputmode="numeric" pattern="[0-9]{1,15}" required autocomplete="off" value=${number} onInput=${(event) => setNumber(event.target.value.trim())} ...${attributes} />`}<//>
      <${Field} label=${t("members.role")} help=${t(`members.role.${role}.about`)}>${(attributes) => html`<select class="select" value=${role} onChange=${(event) => setRole(event.target.value)} ...${attributes}>${ROLES.map((one) => html`<option value=${one} selected=${one === role}>${t(`members.role.${one}`)}</option>`)}</select>`}<//></div>
    <div class="row"><div class="grow"></div><${Button} kind="primary" icon="user-plus" type="submit">${t("members.invite.do")}<//></div></form>`;
}

function RemoveDialog({ member, onRemove, onClose }) {
  const name = member.status === "invited" ? "members.withdraw" : isMe(member) ? "members.leave" : "members.remove";
  return html`<${Dialog} title=${t(name, { name: nameOf(member) })} onClose=${onClose} footer=${html`<${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="danger" icon="trash-2" onClick=${onRemove}>${t(`${name}.do`)}<//>`}>
    <p>${t(`${name}.about`)}</p><//>`;
}
