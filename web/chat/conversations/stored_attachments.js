/** What came with a question: bytes are kept in this browser apart from the message that has them, documents are text. */

import { readOne, writeOne } from "./storage.js";

const MEDIA_TYPE = /^data:((?:image|audio|video)\/[\w+.-]{1,80});base64$/;
const LONGEST_TYPE = 120;

/** Attachments without their `blob`, which is stored. Those of an earlier message are stored already. */
export function storedAttachments(attachments) {
  return Promise.all(attachments.map(async ({ blob, ...attachment }) => {
    if (!blob || attachment.blobId) return attachment;
    await writeOne("blobs", { id: attachment.id, blob });
    return { ...attachment, blobId: attachment.id };
  }));
}

/** Its bytes as a `data:` address; null where this browser does not have them. */
export async function dataUrlOf(attachment) {
  const blob = attachment.blob ?? (await readOne("blobs", attachment.blobId))?.blob;
  if (!blob) return null;
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.replace(/^data:[^,]*,/, startOf(attachment)));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}

export const startOf = (attachment) => `data:${attachment.type.replace(/;.*/, "")};base64,`;

/** The picture, sound or video of a `data:` address; null for anything else. */
export function blobOf(url) {
  const comma = url.slice(0, LONGEST_TYPE).indexOf(",");
  const [, type] = MEDIA_TYPE.exec(url.slice(0, Math.max(0, comma))) ?? [];
  if (!type) return null;
  try {
    return new Blob([Uint8Array.from(atob(url.slice(comma + 1)), (one) => one.charCodeAt(0))], { type });
  } catch {
    return null; // no base64 after all
  }
}

/** A fence longer than any in the document, so that its end is certain. */
export function documentText({ name, text }) {
  const longest = Math.max(2, ...[...(text ?? "").matchAll(/`+/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${name}:\n\n${fence}\n${text}\n${fence}\n`;
}
