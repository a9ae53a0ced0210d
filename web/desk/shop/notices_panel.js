/** Webhooks of the shop, with what came of them. */

import { html, useEffect, useState } from "../../app/view.js";
import { formatDay, formatTime, t } from "../../app/words.js";
import { Badge, Button, CopyButton, Dialog, Field, Icon, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { GROUPS, NoticePreferences } from "../../market/notice_preferences.js";
import { messageOf } from "../own_shop/messages_of.js";

export function NoticesPanel({ shop }) {
  return html`<div class="stack"><${NoticePreferences} path="api/suppliers/${shop.id}/notices/preferences" isShop level="h2" /><${WebhooksPanel} shop=${shop} /></div>`;
}

function WebhooksPanel({ shop }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState("");
  const [dialog, setDialog] = useState(null);
  const path = `api/suppliers/${shop.id}/webhooks`;
  /** Runs what a button does, and reads the list anew. */
  const attempt = async (work = () => undefined) => {
    setError("");
    try {
      await work();
      const hooks = await marketJson(path);
      const dead = await Promise.all(hooks.map((one) => marketJson(`${path}/${one.id}/deliveries?status=dead&limit=100`)));
      setFound(hooks.map((one, at) => ({ ...one, dead: dead[at].length })));
    } catch (fault) {
      setError(messageOf(fault));
    }
  };
  const send = (hook, what, method = "POST", json = undefined) => marketJson(`${path}/${hook.id}${what}`, { method, json });
  useEffect(() => { attempt(); }, []);
  const deeds = {
    test: (hook) => attempt(async () => { await send(hook, "/test"); toast(t("hooks.tested"), "send"); }),
    again: (hook) => attempt(() => send(hook, "/deliveries/retry", "POST", {})),
    turn: (hook) => attempt(() => send(hook, "", "PUT", { is_on: hook.status === "off" })),
    renew: (hook) => attempt(async () => setDialog({ kind: "secret", hook: await send(hook, "/secret") })),
    remove: (hook) => { setDialog(null); attempt(() => send(hook, "", "DELETE")); },
  };
  const close = () => setDialog(null);
  return html`<section class="card own-panel"><header role="presentation"><${Icon} name="send" /><h2 class="grow">${t("hooks")}</h2>${found && html`<${Button} icon="plus" small onClick=${() => setDialog({ kind: "new" })}>${t("hooks.new")}<//>`}</header>
    <p class="soft">${t("hooks.about")}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${!found && !error && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${found && !found.length && html`<p class="faint">${t("hooks.none")}</p>`}
    <ul class="people">${found?.map((one) => html`<${Hook} key=${one.id} hook=${one} deeds=${deeds} onDelete=${() => setDialog({ kind: "delete", hook: one })} />`)}</ul>
    ${dialog?.kind === "new" && html`<${NewHook} path=${path} onClose=${close} onMade=${(hook) => { setDialog({ kind: "secret", hook }); attempt(); }} />`}
    ${dialog?.kind === "secret" && html`<${Secret} hook=${dialog.hook} onClose=${close} />`}
    ${dialog?.kind === "delete" && html`<${Dialog} title=${t("hooks.delete.of", { url: dialog.hook.url })} onClose=${close} footer=${html`<${Button} kind="quiet" onClick=${close}>${t("cancel")}<//><${Button} kind="danger" icon="trash-2" onClick=${() => deeds.remove(dialog.hook)}>${t("hooks.delete")}<//>`}><p>${t("hooks.delete.about")}</p><//>`}
  </section>`;
}

function Hook({ hook, deeds, onDelete }) {
  const isOn = hook.status === "on";
  const last = hook.last_at && new Date(hook.last_at);
  const said = last ? t("hooks.last", { day: formatDay(last), time: formatTime(last), result: hook.last_result }) : t("hooks.last.never");
  return html`<li class="person hook"><span class="grow"><span class="token-name"><strong>${hook.url}</strong><${Badge} kind=${isOn ? "good" : "bad"}>${isOn ? t("hooks.on") : t(`hooks.off.${hook.off_reason}`)}<//>${hook.groups.map((one) => html`<${Badge} key=${one}>${t(`notices.group.${one}`)}<//>`)}</span>
      <span class="faint"><small>${said}${hook.dead > 0 && ` · ${t("hooks.dead", { num: hook.dead })}`}</small></span></span>
    <span class="row-wrap">${isOn && html`<${Button} small icon="send" onClick=${() => deeds.test(hook)}>${t("hooks.test")}<//>`}
    ${isOn && hook.dead > 0 && html`<${Button} small icon="refresh-cw" onClick=${() => deeds.again(hook)}>${t("hooks.again")}<//>`}
    <${Button} small kind="quiet" onClick=${() => deeds.turn(hook)}>${t(isOn ? "hooks.off" : "hooks.on.do")}<//>
    <${Button} small kind="quiet" onClick=${() => deeds.renew(hook)}>${t("hooks.renew")}<//>
    <${Button} small kind="quiet" icon="trash-2" label=${t("hooks.delete.of", { url: hook.url })} onClick=${onDelete} /></span></li>`;
}

function NewHook({ path, onMade, onClose }) {
  const [url, setUrl] = useState("https://");
  const [groups, setGroups] = useState(["orders"]);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      onMade(await marketJson(path, { method: "POST", json: { url: url.trim(), groups } }));
    } catch (fault) {
      setError(messageOf(fault));
      setBusy(false);
    }
  };
  const tick = (group, isOn) => setGroups(GROUPS.filter((one) => (one === group ? isOn : groups.includes(one))));
  return html`<${Dialog} title=${t("hooks.new")} onClose=${onClose}><form class="stack" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Field} label=${t("hooks.url")}>${(attributes) => html`<input class="input" type="url" required maxlength="1000" autofocus autocomplete="off" value=${url} onInput=${(event) => setUrl(event.target.value)} ...${attributes} />`}<//>
    <fieldset class="place stack"><legend>${t("hooks.groups")}</legend>${GROUPS.map((one) => html`<label class="scope" key=${one}><input type="checkbox" checked=${groups.includes(one)} onChange=${(event) => tick(one, event.target.checked)} /><span>${t(`notices.group.${one}`)}</span></label>`)}</fieldset>
    <div class="row"><div class="grow"></div><${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind="primary" type="submit" disabled=${isBusy || !groups.length}>${t("hooks.create")}<//></div></form><//>`;
}

/** The only time that anybody sees it. */
function Secret({ hook, onClose }) {
  return html`<${Dialog} title=${t("hooks.secret")} onClose=${onClose} footer=${html`<${Button} kind="primary" onClick=${onClose}>${t("hooks.kept")}<//>`}>
    <div class="stack"><${Note} kind="warn" role="status">${t("hooks.once")}<//>
      <div class="token-text"><code class="grow">${hook.secret}</code><${CopyButton} text=${hook.secret} label=${t("hooks.copy")} /></div></div><//>`;
}
