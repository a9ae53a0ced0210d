/** Pictures as they are sent: as they are, or made a JPEG where the server would not know the format or take the size. */

const MAX_PIXELS = 16_000_000; // below MAX_IMAGE_PIXELS of the server
const MAX_BYTES = 16 * 2 ** 20; // below MAX_MEDIA_MB
const KNOWN_TYPES = ["image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp", "image/tiff"];
const QUALITY = 0.92;

/** `bitmap` shows what is sent, upright as EXIF says; null where this browser does not know the format. Close it. */
export async function openPicture(file) {
  const bitmap = await bitmapOf(file);
  if (!bitmap || (KNOWN_TYPES.includes(file.type) && bitmap.width * bitmap.height <= MAX_PIXELS && file.size <= MAX_BYTES)) return { blob: file, bitmap };
  const part = Math.min(1, Math.sqrt(MAX_PIXELS / (bitmap.width * bitmap.height)));
  const blob = await asJpeg(bitmap, bitmap.width * part, bitmap.height * part);
  bitmap.close();
  return { blob, bitmap: await bitmapOf(blob) };
}

export function bitmapOf(blob) {
  return createImageBitmap(blob, { imageOrientation: "from-image" }).catch(() => null);
}

/** A part of what a canvas can draw, on white. */
export function asJpeg(source, width, height, [left, top, wide, high] = [0, 0, source.width, source.height]) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.floor(width));
  canvas.height = Math.max(1, Math.floor(height));
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.imageSmoothingQuality = "high";
  context.drawImage(source, left, top, wide, high, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", QUALITY));
}
