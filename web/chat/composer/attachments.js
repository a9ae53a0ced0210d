/** Makes attachments of files: what they are, what the server can take of them, and why not. */

import { counted, formatBytes, formatTimeSpan, t } from "../../app/words.js";
import { readDocument } from "./documents.js";
import { imageOf } from "./pictures.js";

/** The server's own limits by default: MAX_MEDIA_MB, MAX_MEDIA_ITEMS, MAX_VIDEO_SECONDS, MAX_BODY_MB (base64 is a third longer). */
export const MAX_MEDIA_BYTES = 32 * 2 ** 20;
export const MAX_ATTACHMENTS = 16;
export const MAX_ALL_BYTES = 44 * 2 ** 20;
const MAX_VIDEO_SECONDS = 600;
const SOUND_ENDINGS = /\.(wav|mp3|flac|ogg|oga|opus|m4a|aac|aiff?|au)$/i;
const VIDEO_ENDINGS = /\.(mp4|m4v|mov|webm|mkv|avi)$/i;
const PICTURE_ENDINGS = /\.(jpe?g|png|webp|gif|bmp|tiff?|avif|heic|heif|svg)$/i;
const METADATA_MILLISECONDS = 8000;

/** What a user should read: already in words. */
export class AttachmentError extends Error {}

/** `blob` is beside the fields of an Attachment until somebody stores it. */
export async function attachmentOf(file) {
  const kind = kindOf(file);
  const attachment = { id: crypto.randomUUID?.() ?? randomId(), kind, name: nameOf(file, kind), type: file.type, bytes: file.size, blobId: null };
  if (kind === "document") return { ...attachment, type: file.type || "text/plain", text: await readDocument(file) };
  if (kind === "image") return limited({ ...attachment, ...(await imageOf(file)) });
  limited(attachment);
  const facts = await metadataOf(file, kind);
  if (kind === "video" && facts.seconds > MAX_VIDEO_SECONDS) throw new AttachmentError(t("attach.too.long", { name: file.name, minutes: MAX_VIDEO_SECONDS / 60 }));
  return { ...attachment, type: file.type || (kind === "video" ? "video/mp4" : "audio/wav"), ...facts, blob: file };
}

export function kindOf(file) {
  if (file.type.startsWith("image/") || PICTURE_ENDINGS.test(file.name)) return "image";
  if (file.type.startsWith("audio/") || SOUND_ENDINGS.test(file.name)) return "audio";
  // A TypeScript file is no film, whatever a system calls it.
  if ((file.type.startsWith("video/") && !/\.tsx?$/i.test(file.name)) || VIDEO_ENDINGS.test(file.name)) return "video";
  return "document";
}

/** Throws if one more does not fit beside the others. */
export function requireRoom(attachments, added) {
  if (attachments.length >= MAX_ATTACHMENTS) throw new AttachmentError(t("attach.too.many", { max: MAX_ATTACHMENTS }));
  const bytes = [...attachments, added].reduce((sum, one) => sum + one.bytes, 0);
  if (bytes > MAX_ALL_BYTES) throw new AttachmentError(t("attach.all.too.large", { max: formatBytes(MAX_ALL_BYTES) }));
}

/** One line under the name: "640 × 480 · 120 KB". */
export function factsOf(attachment) {
  const facts = [];
  if (attachment.width && attachment.height) facts.push(`${attachment.width} × ${attachment.height}`);
  if (attachment.seconds) facts.push(formatTimeSpan(attachment.seconds, "s", attachment.seconds < 10 ? 1 : 0));
  if (attachment.kind === "document") facts.push(counted("attach.characters", attachment.text.length));
  else facts.push(formatBytes(attachment.bytes));
  return facts.join(" · ");
}

function limited(attachment) {
  if (attachment.bytes > MAX_MEDIA_BYTES) {
    throw new AttachmentError(t("attach.too.large", { name: attachment.name, size: formatBytes(attachment.bytes), max: formatBytes(MAX_MEDIA_BYTES) }));
  }
  return attachment;
}

function nameOf(file, kind) {
  return file.name && file.name !== "image.png" ? file.name.slice(0, 120) : t(`attach.name.${kind}`);
}

/** Sizes and length as the browser reads them; a format that it does not know may still be one that the server does. */
function metadataOf(file, kind) {
  return new Promise((resolve) => {
    const element = document.createElement(kind);
    const url = URL.createObjectURL(file);
    const end = (facts) => {
      clearTimeout(timer);
      URL.revokeObjectURL(url);
      resolve(facts);
    };
    const timer = setTimeout(() => end({}), METADATA_MILLISECONDS);
    element.preload = "metadata";
    element.onloadedmetadata = () => {
      const size = kind === "video" ? { width: element.videoWidth, height: element.videoHeight } : {};
      end({ ...size, ...(Number.isFinite(element.duration) ? { seconds: element.duration } : {}) });
    };
    element.onerror = () => end({});
    element.src = url;
  });
}

/** Pages without https have no `crypto.randomUUID`. */
function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
