/** What came with a question: pictures that enlarge, videos, sounds, documents. */

import { Icon } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { formatBytes, t } from "../../app/words.js";
import { enlarged } from "../markdown/enlarged_picture.js";
import { readOne } from "../conversations/storage.js";

export function Attachments({ attachments }) {
  if (!attachments?.length) return null;
  return html`<ul class="message-attachments">${attachments.map((one) => html`<li key=${one.id}><${One} attachment=${one} /></li>`)}</ul>`;
}

function One({ attachment }) {
  const url = useBlobUrl(attachment.kind === "document" ? null : attachment.blobId);
  if (attachment.kind === "image" && url) return html`<button type="button" class="picture" onClick=${() => { enlarged.value = { url, name: attachment.name }; }}><img src=${url} alt=${attachment.name} /></button>`;
  if (attachment.kind === "video" && url) return html`<video class="picture" src=${url} controls preload="metadata" aria-label=${attachment.name}></video>`;
  if (attachment.kind === "audio" && url) return html`<audio src=${url} controls aria-label=${attachment.name}></audio>`;
  return html`<span class="document"><${Icon} name="file-text" /><span class="one-line">${attachment.name}</span><span class="faint">${formatBytes(attachment.bytes)}</span></span>`;
}

function useBlobUrl(blobId) {
  const [url, setUrl] = useState(null);
  useEffect(() => {
    if (!blobId) return;
    let made = null;
    let isGone = false;
    readOne("blobs", blobId).then((stored) => {
      if (!stored?.blob || isGone) return;
      made = URL.createObjectURL(stored.blob);
      setUrl(made);
    });
    return () => { isGone = true; if (made) URL.revokeObjectURL(made); };
  }, [blobId]);
  return url;
}
