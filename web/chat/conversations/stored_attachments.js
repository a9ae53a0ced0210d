/** What came with a question: bytes are kept in this browser apart from the message that has them, documents are text. */

import { writeOne } from "./storage.js";

/** Attachments without their `blob`, which is stored. Those of an earlier message are stored already. */
export function storedAttachments(attachments) {
  return Promise.all(attachments.map(async ({ blob, ...attachment }) => {
    if (!blob || attachment.blobId) return attachment;
    await writeOne("blobs", { id: attachment.id, blob });
    return { ...attachment, blobId: attachment.id };
  }));
}

/** A fence longer than any in the document, so that its end is certain. */
export function documentText({ name, text }) {
  const longest = Math.max(2, ...[...(text ?? "").matchAll(/`+/g)].map((match) => match[0].length));
  const fence = "`".repeat(longest + 1);
  return `${name}:\n\n${fence}\n${text}\n${fence}\n`;
}
