/** Synonyms: words that people type, and what the catalogue calls that. */

import { html, useState } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";
import { Badge, Button, Icon, Switch } from "../../design/components.js";
import { marketCall } from "../../market/market_calls.js";
import { CategoryField, TextField, WordDialog } from "./word_dialog.js";

const MAX_SHOWN = 60;

export function Synonyms({ synonyms, categories, onSaved }) {
  const [text, setText] = useState("");
  const [edited, setEdited] = useState(null);
  const close = () => setEdited(null);
  const wanted = text.trim().toLowerCase();
  const found = synonyms.filter((one) => !wanted || [one.term, one.means, one.category ?? ""].some((word) => word.toLowerCase().includes(wanted)));
  return html`<div class="row-wrap"><p class="soft grow">${t("admin.synonyms.about")}</p><${Button} icon="plus" onClick=${() => setEdited({ action: "put_synonym" })}>${t("admin.synonym.new")}<//></div>
    <div class="row-wrap"><input class="input admin-filter" type="search" aria-label=${t("admin.synonyms.search")} placeholder=${t("admin.synonyms.search")} value=${text} onInput=${(event) => setText(event.target.value)} />
      <span class="faint numbers" role="status">${t("admin.synonyms.number", { number: formatNumber(found.length), of: formatNumber(synonyms.length) })}</span></div>
    <ul class="admin-list" aria-label=${t("admin.synonyms")}>${found.slice(0, MAX_SHOWN).map((one) => html`<li class="admin-item" key=${one.term}><div class="synonym-line">
      <strong>${one.term}</strong><${Icon} name="arrow-right" label=${t("admin.synonym.means")} /><span class="grow"><span>${one.means.split(",").map((word) => word.trim()).join(", ")}</span> ${one.category && html`<${Badge} icon="tag">${one.category}<//>`} ${one.is_broader && html`<${Badge}>${t("admin.synonym.broader.short")}<//>`}</span>
      <${Button} small kind="quiet" icon="pencil" label=${t("admin.synonym.edit", { name: one.term })} onClick=${() => setEdited({ action: "put_synonym", ...one })} />
      <${Button} small kind="quiet" icon="trash-2" label=${t("admin.synonym.delete", { name: one.term })} onClick=${() => setEdited({ action: "delete_synonym", ...one })} /></div></li>`)}</ul>
    ${found.length > MAX_SHOWN && html`<p class="faint"><small>${t("admin.synonyms.first", { number: MAX_SHOWN })}</small></p>`}
    ${!found.length && html`<p class="soft">${t("admin.synonyms.none")}</p>`}
    ${edited && html`<${SynonymDialog} key=${`${edited.action}${edited.term}`} edited=${edited} categories=${categories} onClose=${close} onSaved=${onSaved} />`}`;
}

function SynonymDialog({ edited, categories, onClose, onSaved }) {
  const { action, term } = edited;
  if (action === "delete_synonym") {
    return html`<${WordDialog} danger title=${t("admin.synonym.delete", { name: term })} about=${t("admin.synonym.delete.text")} button=${t("delete")} changeOf=${() => ({ action, term })}
      save=${() => marketCall(`api/synonyms/${encodeURIComponent(term)}`, { method: "DELETE" })} onClose=${onClose} onSaved=${onSaved} />`;
  }
  const first = { term: term ?? "", means: edited.means ?? "", category: edited.category ?? null, is_broader: edited.is_broader ?? false };
  const fields = (given, change) => html`<div class="two-fields"><${TextField} name="term" label=${t("admin.synonym.term")} help=${t("admin.synonym.term.help")} readonly=${Boolean(term)} given=${given} change=${change} />
      <${TextField} name="means" label=${t("admin.synonym.means")} help=${t("admin.synonym.means.help")} maxlength="200" given=${given} change=${change} /></div>
    <${CategoryField} name="category" label=${t("admin.synonym.category")} none=${t("admin.synonym.category.none")} categories=${categories} given=${given} change=${change} />
    <${Switch} label=${t("admin.synonym.broader")} checked=${given.is_broader} onChange=${(value) => change("is_broader", value)} />`;
  return html`<${WordDialog} title=${term ? t("admin.synonym.edit", { name: term }) : t("admin.synonym.new")} button=${t("save")} first=${first} fields=${fields} changeOf=${(given) => ({ action, ...given })}
    save=${(given) => marketCall("api/synonyms", { method: "POST", json: given })} onClose=${onClose} onSaved=${onSaved} />`;
}
