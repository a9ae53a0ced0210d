/** The models of this server, what each can do, and their loading and unloading. */

import { loadModel, unloadModel } from "../../app/admin.js";
import { getJson } from "../../app/api.js";
import { computed, signal } from "../../app/view.js";

/** As `/v1/models` lists them; null before the first answer. */
export const models = signal(null);
export const modelsError = signal(null);
/** Bytes that each loaded model holds, by id, from `/health`. */
export const heldBytes = signal({});
/** How far loads are that somebody has begun, by id: a part from 0 to 1, or null where nobody knows. */
export const loadParts = signal({});
/** Loads that this page watches: id -> { stage, part }, `part` from 0 to 1 or null. */
export const loads = signal({});

export const chatModels = computed(() => (models.value ?? []).filter((model) => model.capabilities?.includes("chat")));
export const transcriber = computed(() => (models.value ?? []).find((model) => model.capabilities?.includes("transcription")) ?? null);

/** The model that answers: the chosen one while it is served, else the first that chats. */
export function modelOf(settings) {
  const chosen = chatModels.value.find((model) => model.id === settings?.model || model.aliases?.includes(settings?.model));
  return chosen ?? chatModels.value[0] ?? null;
}

export const takes = (model, kind) => Boolean(model?.modalities?.input?.includes(kind));
export const isAble = (model, capability) => Boolean(model?.capabilities?.includes(capability));

let reading = null;

/** Calls that come together share one answer. */
export function refreshModels() {
  reading ??= read().finally(() => { reading = null; });
  return reading;
}

async function read() {
  try {
    models.value = (await getJson("v1/models")).data;
    modelsError.value = null;
  } catch (fault) {
    modelsError.value = fault.message;
    return;
  }
  const health = await getJson("health", { ask: false }).catch((fault) => fault.body);
  const known = health?.models ?? [];
  heldBytes.value = Object.fromEntries(known.map((model) => [model.id, model.memoryBytes]));
  loadParts.value = Object.fromEntries(known.map((model) => [model.id, model.progress]));
}

/** Resolves to true when the model is ready; throws with the words of the server if it does not load. */
export async function load(id) {
  show(id, { stage: "waiting", part: null });
  try {
    return await loadModel(id, (step) => show(id, step));
  } finally {
    show(id, null);
    await refreshModels();
  }
}

export async function unload(id) {
  try {
    return await unloadModel(id);
  } finally {
    await refreshModels();
  }
}

function show(id, progress) {
  const { [id]: _, ...others } = loads.value;
  loads.value = progress ? { ...others, [id]: progress } : others;
}
