/** Pictures before they are sent: scaled down if they are larger than the server takes, and made a JPEG if it does not know their format. */

import { t } from "../../app/words.js";

/** Below MAX_IMAGE_PIXELS and MAX_MEDIA_MB of the server: each turn sends the pictures of the conversation again. */
const MAX_PIXELS = 12_000_000;
const MAX_BYTES = 8 * 2 ** 20;
const KNOWN_TYPES = ["image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"];
const QUALITY = 0.9;

export async function imageOf(file) {
  let picture;
  try {
    // The orientation in the EXIF data is applied here, so width and height are those that one sees.
    picture = await createImageBitmap(file, { imageOrientation: "from-image" });
  } catch {
    picture = await drawnBitmap(file);
  }
  try {
    const { width, height } = picture;
    const isKnown = KNOWN_TYPES.includes(file.type);
    // The server applies the orientation, too, so a file that fits is sent as it is.
    if (isKnown && width * height <= MAX_PIXELS && file.size <= MAX_BYTES) return { blob: file, type: file.type, bytes: file.size, width, height };
    const part = Math.min(1, Math.sqrt(MAX_PIXELS / (width * height)));
    return await encoded(picture, Math.max(1, Math.floor(width * part)), Math.max(1, Math.floor(height * part)));
  } finally {
    picture.close?.();
  }
}

/** As a JPEG on white: pictures of this size are photos. */
export async function encoded(source, width, height) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.drawImage(source, 0, 0, width, height);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", QUALITY));
  return { blob, type: "image/jpeg", bytes: blob.size, width, height };
}

/** Drawings (SVG) are no bitmaps; HEIC is known to some browsers only. */
async function drawnBitmap(file) {
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const width = image.naturalWidth || 1024;
    const height = image.naturalHeight || 1024;
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width, height });
    canvas.getContext("2d").drawImage(image, 0, 0, width, height);
    return canvas;
  } catch {
    throw new Error(t("attach.unreadable.picture", { name: file.name }));
  } finally {
    URL.revokeObjectURL(url);
  }
}
