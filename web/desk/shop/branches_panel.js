/** The places that the shop has beside its own address: added, changed, closed and opened again. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Badge, Button, Icon, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { BranchForm } from "./branch_form.js";

export function BranchesPanel({ shop }) {
  const path = `api/suppliers/${shop.id}/branches`;
  const [found, setFound] = useState(null);
  const [error, setError] = useState("");
  const [edited, setEdited] = useState(undefined); // null: a new one
  const panel = useRef(null);
  const read = () => marketJson(path).then(setFound, (fault) => setError(messageOf(fault)));
  useEffect(() => { read(); }, []);
  const setOpen = async (branch, isOpen) => {
    setError("");
    try {
      await marketJson(`${path}/${branch.id}`, { method: "PUT", json: { is_active: isOpen, version: branch.version } });
      toast(t(isOpen ? "branches.opened" : "branches.closed.done", { name: branch.name }));
    } catch (fault) {
      setError(messageOf(fault));
    }
    await read();
  };
  const leave = (isSaved) => {
    setEdited(undefined);
    if (isSaved) {
      toast(t("own.saved"));
      read();
    }
    setTimeout(() => panel.current?.focus({ preventScroll: true })); // the form that had the focus is gone
  };
  if (edited !== undefined) return html`<${BranchForm} path=${path} branch=${edited} onSaved=${() => leave(true)} onBack=${() => leave(false)} onStale=${read} />`;
  return html`<section class="card own-panel stack" ref=${panel} tabindex="-1"><header role="presentation"><${Icon} name="map-pin" /><h2 class="grow">${t("branches")}</h2>${found && html`<${Button} icon="plus" small onClick=${() => setEdited(null)}>${t("branches.new")}<//>`}</header>
    <p class="soft">${t("branches.about")}</p>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${!found && !error && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${found && !found.length && html`<p class="faint">${t("branches.none")}</p>`}
    <ul class="people">${found?.map((one) => html`<${Branch} key=${one.id} branch=${one} onEdit=${() => setEdited(one)} onOpen=${(isOpen) => setOpen(one, isOpen)} />`)}</ul>
  </section>`;
}

function Branch({ branch, onEdit, onOpen }) {
  const { name, is_active: isActive, open_now: isOpenNow } = branch;
  const hours = isOpenNow === null ? null : html`<${Badge} kind=${isOpenNow ? "good" : ""}>${t(isOpenNow ? "branches.open.now" : "branches.shut.now")}<//>`;
  return html`<li class="person"><span class="grow"><span class="token-name"><strong>${name}</strong>${isActive ? hours : html`<${Badge} kind="warn">${t("branches.closed")}<//>`}</span>
      <span class="soft"><small>${[branch.address, branch.city, branch.province].filter(Boolean).join(", ")}</small></span></span>
    <${Button} small icon="pencil" label=${t("branches.change", { name })} onClick=${onEdit} />
    <${Button} small icon=${isActive ? "ban" : "rotate-ccw"} aria-label=${t(isActive ? "branches.close" : "branches.open", { name })} onClick=${() => onOpen(!isActive)}>${t(isActive ? "branches.close.do" : "branches.open.do")}<//></li>`;
}
