/** What is attached: a thumbnail or an icon, the name, and a button that removes it. */

import { Button, Icon } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { factsOf } from "./attachments.js";

const ICONS = { image: "image", video: "video", audio: "audio-lines", document: "file-text" };

export function Chips({ attachments, pending, problemOf, onRemove, onTranscribe }) {
  if (!attachments.length && !pending.length) return null;
  return html`<ul class="chips" aria-label=${t("attach.list")}>
    ${attachments.map((one) => html`<${Chip} key=${one.id} attachment=${one} problem=${problemOf(one)} onRemove=${() => onRemove(one)} onTranscribe=${onTranscribe && one.kind === "audio" ? () => onTranscribe(one) : null} />`)}
    ${pending.map((name) => html`<li class="chip" key=${name}><span class="chip-picture"><${Icon} name="loader-circle" spin /></span><span class="chip-words"><span class="one-line">${name}</span><span class="faint">${t("attach.reading")}</span></span></li>`)}
  </ul>`;
}

function Chip({ attachment, problem, onRemove, onTranscribe }) {
  return html`<li class="chip ${problem ? "warned" : ""}">
    <${Thumbnail} attachment=${attachment} />
    <span class="chip-words">
      <span class="one-line" title=${attachment.name}>${attachment.name}</span>
      ${problem ? html`<span class="chip-problem"><${Icon} name="triangle-alert" />${problem}</span>` : html`<span class="faint">${factsOf(attachment)}</span>`}
      ${onTranscribe && html`<button type="button" class="chip-action" onClick=${onTranscribe}>${t("attach.transcribe")}</button>`}
    </span>
    <${Button} small icon="x" kind="quiet" label=${t("attach.remove", { name: attachment.name })} onClick=${onRemove} />
  </li>`;
}

function Thumbnail({ attachment }) {
  const [url, setUrl] = useState(null);
  const { blob, kind } = attachment;
  useEffect(() => {
    if (!blob || (kind !== "image" && kind !== "video")) return undefined;
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  if (url && kind === "image") return html`<img class="chip-picture" src=${url} alt="" />`;
  if (url) return html`<video class="chip-picture" src=${url} muted preload="metadata" aria-hidden="true" tabindex="-1"></video>`;
  return html`<span class="chip-picture"><${Icon} name=${ICONS[kind]} /></span>`;
}
