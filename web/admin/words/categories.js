/** Categories as a tree: names in two languages, and where each stands. */

import { html, useState } from "../../app/view.js";
import { formatNumber, t } from "../../app/words.js";
import { Button } from "../../design/components.js";
import { marketCall } from "../../market/market_calls.js";
import { linesOf, slugsBelow } from "./tree.js";
import { CategoryField, TextField, WordDialog } from "./word_dialog.js";

const NAMES = ["name_id", "name_en"];

export function Categories({ tree, onSaved }) {
  const [edited, setEdited] = useState(null);
  const close = () => setEdited(null);
  return html`<div class="row"><p class="soft grow">${t("admin.categories.about")}</p><${Button} icon="plus" onClick=${() => setEdited({ action: "create_category" })}>${t("admin.category.new")}<//></div>
    <${Branch} nodes=${tree} onEdit=${setEdited} />
    ${edited && html`<${CategoryDialog} key=${`${edited.action}${edited.slug}`} edited=${edited} tree=${tree} onClose=${close} onSaved=${onSaved} />`}`;
}

function Branch({ nodes, onEdit }) {
  return html`<ul class="category-tree">${nodes.map((node) => html`<li key=${node.slug}><div class="category-line"><span class="grow one-line"><strong>${node.name}</strong> <span class="faint mono">${node.slug}</span></span>
      <span class="faint numbers">${t("admin.category.goods", { number: formatNumber(node.product_count) })}</span>
      <${Button} small kind="quiet" icon="pencil" label=${t("admin.category.edit", { name: node.name })} onClick=${() => onEdit({ action: "change_category", ...node })} />
      <${Button} small kind="quiet" icon="trash-2" label=${t("admin.category.delete", { name: node.name })} disabled=${Boolean(node.children.length)} onClick=${() => onEdit({ action: "delete_category", ...node })} /></div>
    ${Boolean(node.children.length) && html`<${Branch} nodes=${node.children} onEdit=${onEdit} />`}</li>`)}</ul>`;
}

function CategoryDialog({ edited, tree, onClose, onSaved }) {
  const { action, slug } = edited;
  const closed = action === "change_category" ? slugsBelow(tree, slug) : new Set();
  const parents = linesOf(tree).filter((one) => !closed.has(one.slug));
  const first = { name_id: edited.name_id ?? "", name_en: edited.name_en ?? "", parent: edited.parent ?? null, slug: slug ?? "" };
  const fields = (given, change) => html`${action === "create_category" && html`<${TextField} name="slug" label=${t("admin.category.slug")} help=${t("admin.category.slug.help")} pattern="[a-z0-9]+(-[a-z0-9]+)*" given=${given} change=${change} />`}
    <div class="two-fields">${NAMES.map((name) => html`<${TextField} key=${name} name=${name} label=${t(`admin.category.${name}`)} given=${given} change=${change} />`)}</div>
    <${CategoryField} name="parent" label=${t("admin.category.parent")} none=${t("admin.category.top")} categories=${parents} given=${given} change=${change} />`;
  if (action === "delete_category") {
    return html`<${WordDialog} danger title=${t("admin.category.delete", { name: edited.name })} about=${t("admin.category.delete.text")} button=${t("delete")} changeOf=${() => ({ action, slug })}
      save=${() => marketCall(`api/categories/${slug}`, { method: "DELETE" })} onClose=${onClose} onSaved=${onSaved} />`;
  }
  const changes = ({ name_id, name_en, parent }) => ({ name_id, name_en, parent });
  const isNew = action === "create_category";
  return html`<${WordDialog} title=${isNew ? t("admin.category.new") : t("admin.category.edit", { name: edited.name })} about=${isNew ? "" : t("admin.category.edit.text")} button=${t("save")} first=${first} fields=${fields}
    changeOf=${(given) => ({ action, slug: given.slug, ...changes(given) })}
    save=${(given) => (isNew ? marketCall("api/categories", { method: "POST", json: given }) : marketCall(`api/categories/${slug}`, { method: "PUT", json: changes(given) }))} onClose=${onClose} onSaved=${onSaved} />`;
}
