/** Tokens for the shop's programs: made, shown once, revoked. */

import { addressOf } from "../../app/addresses.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatDay, formatTime, t } from "../../app/words.js";
import { Badge, Button, CopyButton, Dialog, Field, Icon, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";

const SCOPES = ["read", "stock", "goods"];
const DAYS = [7, 30, 90, 366];

export function TokensPanel({ shop }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState("");
  const [dialog, setDialog] = useState(null);
  const path = `api/suppliers/${shop.id}/tokens`;
  const read = async () => {
    try {
      setFound(await marketJson(path));
      setError("");
    } catch (fault) {
      setError(messageOf(fault));
    }
  };
  useEffect(() => { read(); }, []);
  const revoke = async (token) => {
    setDialog(null);
    try {
      await marketJson(`${path}/${token.id}`, { method: "DELETE" });
      toast(t("tokens.revoked"));
      await read();
    } catch (fault) {
      setError(messageOf(fault));
    }
  };
  return html`<section class="card own-panel"><header role="presentation"><${Icon} name="key-round" /><h2 class="grow">${t("tokens")}</h2>${found && html`<${Button} icon="plus" small onClick=${() => setDialog({ kind: "new" })}>${t("tokens.new")}<//>`}</header>
    <p class="soft">${t("tokens.about")}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${!found && !error && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${found && !found.length && html`<p class="faint">${t("tokens.none")}</p>`}
    <ul class="people">${found?.map((one) => html`<${Token} key=${one.id} token=${one} onRevoke=${() => setDialog({ kind: "revoke", token: one })} />`)}</ul>
    ${dialog?.kind === "new" && html`<${NewToken} path=${path} shop=${shop} onMade=${read} onClose=${() => setDialog(null)} />`}
    ${dialog?.kind === "revoke" && html`<${Dialog} title=${t("tokens.revoke.of", { name: dialog.token.name })} onClose=${() => setDialog(null)} footer=${html`<${Button} kind="quiet" onClick=${() => setDialog(null)}>${t("cancel")}<//><${Button} kind="danger" icon="trash-2" onClick=${() => revoke(dialog.token)}>${t("tokens.revoke")}<//>`}><p>${t("tokens.revoke.about")}</p><//>`}
  </section>`;
}

function Token({ token, onRevoke }) {
  const isOver = Date.parse(token.expires_at) <= Date.now();
  const used = token.last_used_at && new Date(token.last_used_at);
  return html`<li class="person"><span class="grow"><span class="token-name"><strong>${token.name}</strong>${token.scopes.map((scope) => html`<${Badge} key=${scope}>${t(`tokens.scope.${scope}`)}<//>`)}${isOver && html`<${Badge} kind="bad">${t("tokens.expired")}<//>`}</span>
      <span class="faint"><small>${t(isOver ? "tokens.until.past" : "tokens.until", { day: formatDay(new Date(token.expires_at)) })} · ${used ? t("tokens.used", { day: formatDay(used), time: formatTime(used) }) : t("tokens.used.never")}</small></span></span>
    <${Button} small kind="quiet" icon="trash-2" label=${t("tokens.revoke.of", { name: token.name })} onClick=${onRevoke} /></li>`;
}

function NewToken({ path, shop, onMade, onClose }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(["read"]);
  const [days, setDays] = useState(90);
  const [made, setMade] = useState(null);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      setMade(await marketJson(path, { method: "POST", json: { name: name.trim(), scopes, days } }));
      onMade();
    } catch (fault) {
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  const tick = (scope, isOn) => setScopes(SCOPES.filter((one) => (one === scope ? isOn : scopes.includes(one))));
  if (made) return html`<${Shown} made=${made} shop=${shop} onClose=${onClose} />`;
  return html`<${Dialog} title=${t("tokens.new")} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Field} label=${t("tokens.name")} help=${t("tokens.name.help")}>${(attributes) => html`<input class="input" required maxlength="100" autofocus autocomplete="off" value=${name} onInput=${(event) => setName(event.target.value)} ...${attributes} />`}<//>
    <fieldset class="place stack"><legend>${t("tokens.scopes")}</legend>${SCOPES.map((scope) => html`<label class="scope" key=${scope}><input type="checkbox" checked=${scopes.includes(scope)} onChange=${(event) => tick(scope, event.target.checked)} /><span><strong>${t(`tokens.scope.${scope}`)}</strong><br /><small class="soft">${t(`tokens.scope.${scope}.about`)}</small></span></label>`)}</fieldset>
    <${Field} label=${t("tokens.days")}>${(attributes) => html`<select class="select" value=${String(days)} onChange=${(event) => setDays(Number(event.target.value))} ...${attributes}>${DAYS.map((number) => html`<option value=${String(number)} selected=${number === days}>${t(`tokens.days.${number}`)}</option>`)}</select>`}<//>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" disabled=${isBusy || !scopes.length}>${t("tokens.create")}<//></div></form><//>`;
}

/** The only time that anybody sees it. */
function Shown({ made, shop, onClose }) {
  const example = `curl ${new URL(addressOf(`api/suppliers/${shop.id}/stock-movements`), location.href)} \\\n  -H "Authorization: Bearer ${made.token}"`;
  return html`<${Dialog} title=${t("tokens.made", { name: made.name })} onClose=${onClose} footer=${html`<${Button} kind="primary" onClick=${onClose}>${t("tokens.kept")}<//>`}>
    <div class="stack"><${Note} kind="warn" role="status">${t("tokens.once")}<//>
      <div class="token-text"><code class="grow">${made.token}</code><${CopyButton} text=${made.token} label=${t("tokens.copy")} /></div>
      <details><summary>${t("tokens.example")}</summary><pre class="token-example scroll" tabindex="0">${example}</pre></details></div><//>`;
}
