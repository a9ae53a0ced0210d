/** The badge: the person behind the shop shows an identity card once. It is read and not kept. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { formatDay, t } from "../../app/words.js";
import { Badge, Button, Icon, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { readProfile } from "./own_profile.js";

const KINDS = { verified: "good", doubtful: "warn", refused: "bad", suspended: "warn" };

export function CardPanel({ shop }) {
  const path = `api/suppliers/${shop.id}/verification`;
  const [shown, setShown] = useState(undefined);
  const [agrees, setAgrees] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const picker = useRef(null);
  const read = () => marketJson(path).catch((fault) => {
    if (fault.status === 404) return null;
    throw fault;
  });
  useEffect(() => { read().then(setShown, (fault) => setError(messageOf(fault))); }, []);
  const doing = async (work) => {
    setBusy(true);
    setError("");
    try {
      await work();
      await readProfile(shop.id);
    } catch (fault) {
      setError(messageOf(fault));
    } finally {
      setBusy(false);
    }
  };
  const show = (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    const form = new FormData();
    form.set("consent", "true");
    form.set("image", file, "card"); // the name of the file is nobody's business
    doing(async () => setShown(await marketJson(path, { method: "PUT", body: form })));
  };
  const withdraw = () => doing(async () => {
    await marketJson(path, { method: "DELETE" });
    const kept = await read();
    setShown(kept);
    if (!kept) toast(t("own.card.withdrawn"));
  });
  const state = shown?.doubts.includes("withdrawn") ? "suspended" : shown?.status;
  return html`<section class="card own-panel stack" aria-busy=${isBusy}><header role="presentation"><${Icon} name="shield-check" /><h2 class="grow">${t("own.card")}</h2>${shown && html`<${Badge} kind=${KINDS[state]}>${t(`own.card.${state}`)}<//>`}</header>
    <p class="soft">${t("own.card.about")}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${shown === undefined && !error && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${shown && html`<div role="status" class="stack"><p>${t(`own.card.${state}.about`, { day: formatDay(new Date(shown.checked_at)) })}</p>
      ${shown.decided_reason && html`<p>${t("own.card.reason", { reason: shown.decided_reason })}</p>`}
      <ul>${shown.doubts.map((doubt) => html`<li key=${doubt}>${t(`own.card.doubt.${doubt}`)}</li>`)}</ul></div>`}
    <label class="scope"><input type="checkbox" checked=${agrees} onChange=${(event) => setAgrees(event.target.checked)} /><span>${t("own.card.consent")}</span></label>
    <div class="row-wrap">
      <input ref=${picker} type="file" accept="image/*" hidden onChange=${show} aria-label=${t("own.card.show")} />
      <${Button} kind="primary" icon="id-card" disabled=${!agrees || isBusy} onClick=${() => picker.current.click()}>${t(isBusy ? "own.card.reading" : shown ? "own.card.again" : "own.card.show")}<//>
      ${shown && html`<${Button} kind="danger" icon="trash-2" disabled=${isBusy} onClick=${withdraw}>${t("own.card.withdraw")}<//>`}
    </div>
  </section>`;
}
