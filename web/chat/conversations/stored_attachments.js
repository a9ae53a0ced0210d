/** Keeps the bytes of attachments in this browser, apart from the message that has them. */

import { writeOne } from "./storage.js";

/** Attachments without their `blob`, which is stored. Those of an earlier message are stored already. */
export function storedAttachments(attachments) {
  return Promise.all(attachments.map(async ({ blob, ...attachment }) => {
    if (!blob || attachment.blobId) return attachment;
    await writeOne("blobs", { id: attachment.id, blob });
    return { ...attachment, blobId: attachment.id };
  }));
}
