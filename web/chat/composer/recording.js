/** Records the microphone, with a level to look at, and has what was said written down. */

import { call } from "../../app/api.js";
import { eventsOf } from "../../app/event_stream.js";

export const MAX_SECONDS = 600;
const TYPES = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];

/** Opens the microphone. Resolves to a recording: `level()` from 0 to 1, `seconds()`, `stop()` to a Blob, `cancel()`. */
export async function record() {
  if (!navigator.mediaDevices?.getUserMedia || typeof MediaRecorder === "undefined") throw new Error("no devices");
  const stream = await navigator.mediaDevices.getUserMedia({ audio: { echoCancellation: true, noiseSuppression: true } });
  const type = TYPES.find((one) => MediaRecorder.isTypeSupported(one)) ?? "";
  const recorder = new MediaRecorder(stream, type ? { mimeType: type } : {});
  const meter = meterOf(stream);
  const parts = [];
  const startedAt = performance.now();
  recorder.ondataavailable = (event) => event.data.size && parts.push(event.data);
  recorder.start(1000);
  const close = () => {
    meter.close();
    stream.getTracks().forEach((track) => track.stop());
  };
  return {
    level: meter.level,
    seconds: () => (performance.now() - startedAt) / 1000,
    cancel: () => { if (recorder.state !== "inactive") recorder.stop(); close(); },
    stop: () => new Promise((resolve) => {
      recorder.onstop = () => { close(); resolve(new Blob(parts, { type: (recorder.mimeType || type).replace(/;.*/, "") })); };
      recorder.stop();
    }),
  };
}

function meterOf(stream) {
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  analyser.fftSize = 512;
  context.createMediaStreamSource(stream).connect(analyser);
  const samples = new Float32Array(analyser.fftSize);
  return {
    level: () => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      // Speech is around -30 dB: the meter shows -60 to -10.
      return Math.min(1, Math.max(0, (10 * Math.log10(power + 1e-9) + 60) / 50));
    },
    close: () => context.close().catch(() => {}),
  };
}

/** Calls `onText` with what has been heard so far; resolves to the whole. */
export async function transcribe(blob, name, model, { onText, signal }) {
  const form = new FormData();
  form.set("model", model.id);
  form.set("file", blob, name);
  form.set("stream", "true");
  const answer = await call("v1/audio/transcriptions", { method: "POST", body: form, signal });
  let text = "";
  for await (const { data } of eventsOf(answer)) {
    if (data === "[DONE]") break;
    const event = JSON.parse(data);
    if (event.error) throw new Error(event.error.message);
    if (event.type === "transcript.text.delta") onText((text += event.delta).trimStart());
    if (event.type === "transcript.text.done") return event.text.trim();
  }
  return text.trim();
}
