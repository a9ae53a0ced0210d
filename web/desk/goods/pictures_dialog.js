/** The pictures of a product: dropped or chosen, put in order, and what they show. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { addressOf } from "../../app/addresses.js";
import { t } from "../../app/words.js";
import { Badge, Button, Dialog, Icon, Note } from "../../design/components.js";
import { marketCall, marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { refreshRow } from "./goods_list.js";

const MAX_PICTURES = 8;
const TYPES = "image/jpeg,image/png,image/webp,image/gif,image/bmp,image/tiff,image/heic";
// A model that sees may propose a text: it is asked for a while, and not for ever, as there may be none.
const ASK_MILLISECONDS = 2500;
const MAX_ASKED = 12;

export function PicturesDialog({ product, onClose }) {
  const path = `api/products/${product.id}/pictures`;
  const [pictures, setPictures] = useState(null);
  const [error, setError] = useState("");
  const [uploading, setUploading] = useState(0);
  const [isOver, setOver] = useState(false);
  const field = useRef(null);
  const attempt = async (work) => {
    setError("");
    try {
      await work();
    } catch (fault) {
      setError(messageOf(fault));
    }
  };
  const read = async () => setPictures(await marketJson(path));
  const changedBy = async (work) => attempt(async () => { await work(); await read(); await refreshRow(product.id); });
  useEffect(() => { attempt(read); }, []);
  useProposals(pictures, read);
  const add = async (files) => {
    for (const file of files) {
      setUploading((number) => number + 1);
      const form = new FormData();
      form.append("file", file);
      await changedBy(() => marketCall(path, { method: "POST", body: form }));
      setUploading((number) => number - 1);
    }
  };
  const move = (from, to) => {
    const order = pictures.map((one) => one.id);
    order.splice(to, 0, ...order.splice(from, 1));
    return changedBy(() => marketCall(path, { method: "PUT", json: { order } }));
  };
  const onDrop = (event) => {
    event.preventDefault();
    setOver(false);
    add([...event.dataTransfer.files]);
  };
  const isFull = (pictures?.length ?? 0) >= MAX_PICTURES;
  return html`<${Dialog} wide title=${t("goods.pictures.of", { name: product.name })} onClose=${onClose}><div class="stack">
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${pictures && html`<ol class="picture-list">${pictures.map((one, at) => html`<${PictureItem} key=${one.id} picture=${one} at=${at} last=${pictures.length - 1} onMove=${(to) => move(at, to)}
      onDescribe=${(alt) => changedBy(() => marketCall(`${path}/${one.id}`, { method: "PUT", json: alt === undefined ? { alt_status: "confirmed" } : { alt } }))} onRemove=${() => changedBy(() => marketCall(`${path}/${one.id}`, { method: "DELETE" }))} />`)}</ol>`}
    ${isFull ? html`<p class="soft">${t("goods.pictures.full", { number: MAX_PICTURES })}</p>` : html`<div class=${isOver ? "drop-zone is-over" : "drop-zone"} onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${onDrop}>
      <${Icon} name=${uploading ? "loader-circle" : "image-plus"} spin=${uploading > 0} /><p role="status">${t(uploading ? "goods.pictures.sending" : "goods.pictures.drop")}</p>
      <input ref=${field} type="file" hidden accept=${TYPES} multiple onChange=${(event) => { add([...event.target.files]); event.target.value = ""; }} />
      <${Button} icon="upload" disabled=${uploading > 0} onClick=${() => field.current.click()}>${t("goods.pictures.choose")}<//></div>`}
  </div><//>`;
}

function PictureItem({ picture, at, last, onMove, onDescribe, onRemove }) {
  const [text, setText] = useState(picture.alt ?? "");
  useLayoutEffect(() => { setText(picture.alt ?? ""); }, [picture.alt]);
  const isProposed = picture.alt_status === "proposed";
  const describe = (event) => {
    event.preventDefault();
    onDescribe(isProposed && text === picture.alt ? undefined : text.trim() || null);
  };
  const number = at + 1;
  return html`<li class="picture-item"><img src=${addressOf(picture.urls.medium)} alt=${picture.alt ?? t("goods.picture.number", { number })} loading="lazy" decoding="async" />
    <form class="stack" onSubmit=${describe}>
      <label class="field"><span class="field-label row">${t("goods.picture.alt")}${isProposed && html`<${Badge} kind="info" icon="sparkles">${t("goods.picture.proposed")}<//>`}${at === 0 && html`<${Badge}>${t("goods.picture.first")}<//>`}</span>
        <textarea class="textarea" rows="2" maxlength="300" value=${text} onInput=${(event) => setText(event.target.value)}></textarea></label>
      <div class="row-wrap"><${Button} small kind=${isProposed ? "primary" : ""} icon="check" type="submit" disabled=${!isProposed && text === (picture.alt ?? "")}>${t(isProposed ? "goods.picture.confirm" : "save")}<//><div class="grow"></div>
        <${Button} small icon="arrow-up" label=${t("goods.picture.earlier", { number })} disabled=${at === 0} onClick=${() => onMove(at - 1)} /><${Button} small icon="arrow-down" label=${t("goods.picture.later", { number })} disabled=${at === last} onClick=${() => onMove(at + 1)} />
        <${Button} small kind="danger" icon="trash-2" label=${t("goods.picture.remove", { number })} onClick=${onRemove} /></div>
    </form></li>`;
}

/** Asks again while a picture has no text yet. */
function useProposals(pictures, read) {
  const asked = useRef(0);
  const isMissing = pictures?.some((one) => !one.alt && !one.alt_status) ?? false;
  useEffect(() => {
    if (!isMissing || asked.current >= MAX_ASKED) return undefined;
    const timer = setTimeout(() => { asked.current += 1; read().catch(() => {}); }, ASK_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [pictures]);
}
