/** A change of categories or synonyms: its fields, what it would do to searches, and only then the button that makes it. */

import { html, useEffect, useRef, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Dialog, Field, Note, toast } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { SearchPreview } from "./preview.js";

const MAX_QUERIES = 10;
const MAX_QUERY_CHARS = 200;

/**
 * `fields(given, change)` draws the form, `changeOf(given)` is what the preview takes, `save(given)` makes the change.
 * A change of the fields takes the preview away: what is saved was looked at.
 */
export function WordDialog({ title, about, first = {}, fields, changeOf, save, button, danger = false, onClose, onSaved }) {
  const [given, setGiven] = useState(first);
  const [queries, setQueries] = useState("");
  const [preview, setPreview] = useState(null);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const shown = useRef(null);
  useEffect(() => { if (preview) shown.current.scrollIntoView({ block: "nearest" }); }, [preview]);
  const attempt = async (work) => {
    setBusy(true);
    setError("");
    try {
      await work();
    } catch (fault) {
      setError(fault.message);
    }
    setBusy(false);
  };
  const look = (event) => {
    event.preventDefault();
    const asked = queries.split("\n").map((line) => line.trim().slice(0, MAX_QUERY_CHARS)).filter(Boolean).slice(0, MAX_QUERIES);
    attempt(async () => setPreview(await marketJson("api/admin/search-preview", { method: "POST", json: { change: changeOf(given), ...(asked.length && { queries: asked }) } })));
  };
  const make = () => attempt(async () => {
    await save(given);
    onSaved();
    onClose();
    toast(t("admin.words.saved"));
  });
  const change = (name, value) => { setGiven({ ...given, [name]: value }); setPreview(null); };
  return html`<${Dialog} wide title=${title} onClose=${onClose} footer=${html`<${Button} kind="quiet" onClick=${onClose}>${t("cancel")}<//><${Button} kind=${danger ? "danger" : "primary"} disabled=${!preview || isBusy} onClick=${make}>${button}<//>`}>
    <form class="stack" onSubmit=${look}>
      ${about && html`<p class="soft">${about}</p>`}
      ${fields?.(given, change)}
      <${Field} label=${t("admin.preview.queries")} help=${t("admin.preview.queries.help")}>${(attributes) => html`<textarea class="textarea" rows="2" value=${queries} onInput=${(event) => { setQueries(event.target.value); setPreview(null); }} ...${attributes}></textarea>`}<//>
      <div class="row-wrap"><${Button} type="submit" icon="search" disabled=${isBusy}>${t("admin.preview.do")}<//>${!preview && html`<span class="faint"><small>${t("admin.preview.first")}</small></span>`}</div>
    </form>
    <div class="stack preview" ref=${shown} aria-live="polite" aria-busy=${isBusy}>${error && html`<${Note} kind="bad" role="alert">${error}<//>`}${preview && html`<${SearchPreview} preview=${preview} />`}</div>
  <//>`;
}

export function TextField({ name, label, help, given, change, ...more }) {
  return html`<${Field} label=${label} help=${help}>${(attributes) => html`<input class="input" name=${name} required maxlength="100" ...${more} value=${given[name] ?? ""} onInput=${(event) => change(name, event.target.value)} ...${attributes} />`}<//>`;
}

/** A category, or none. `categories`: as the tree has them, each with its `depth`. */
export function CategoryField({ name, label, none, categories, given, change }) {
  return html`<${Field} label=${label}>${(attributes) => html`<select class="select" name=${name} value=${given[name] ?? ""} onChange=${(event) => change(name, event.target.value || null)} ...${attributes}>
    <option value="">${none}</option>${categories.map((one) => html`<option key=${one.slug} value=${one.slug} selected=${one.slug === given[name]}>${"  ".repeat(one.depth)}${one.name}</option>`)}</select>`}<//>`;
}
