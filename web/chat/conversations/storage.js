/** What the chat keeps in this browser. What the database does not take stays in memory, so that the page shows and exports it. */

import { database, reading, storageState, writing } from "./database.js";

/** Store to id to value: newer than what the database has, or missing there. */
const unstored = new Map();

function unstoredOf(store) {
  if (!unstored.has(store)) unstored.set(store, new Map());
  return unstored.get(store);
}

export async function readOne(store, id) {
  const found = await reading(store, (objects) => objects.get(id));
  return unstoredOf(store).get(id) ?? found;
}

export async function readAll(store) {
  return merged(store, await reading(store, (objects) => objects.getAll()));
}

export async function readMessagesOf(conversationId) {
  const found = await reading("messages", (objects) => objects.index("conversationId").getAll(conversationId));
  return merged("messages", found, (one) => one.conversationId === conversationId);
}

function merged(store, found = [], belongs = () => true) {
  const newer = [...unstoredOf(store).values()].filter(belongs);
  return [...found.filter((one) => !unstoredOf(store).has(one.id)), ...newer];
}

/** Writes all or none. */
export async function writeAll(store, values) {
  const isWritten = await writing([store], (objects) => values.forEach((value) => objects[store].put(value)));
  for (const value of values) {
    if (isWritten) unstoredOf(store).delete(value.id);
    else unstoredOf(store).set(value.id, structuredClone(value));
  }
  if (isWritten) await writeUnstored();
}

export const writeOne = (store, value) => writeAll(store, [value]);

/**
 * Replaces what is stored by `make(stored)`, with no other tab in between; null leaves it. Returns what is there then:
 * undefined if it was deleted. `known` is what the page has, for a page without a database.
 */
export async function change(store, known, make) {
  const newer = unstoredOf(store);
  const { id } = known;
  let after;
  const changed = (before) => {
    const made = before ? make(before) : null;
    after = made ?? before;
    return made;
  };
  const hasDatabase = Boolean(await database());
  if (newer.has(id) || !hasDatabase) {
    const made = changed(newer.get(id) ?? known);
    if (made) newer.set(id, structuredClone(made));
    return after;
  }
  const isWritten = await writing([store], (objects) => {
    objects[store].get(id).onsuccess = (event) => {
      try {
        const made = changed(event.target.result);
        if (made) objects[store].put(made);
      } catch {
        event.target.transaction.abort();
      }
    };
  });
  if (!isWritten && after) newer.set(id, structuredClone(after));
  // It was not stored yet, and has just turned out not to fit.
  if (!after && newer.has(id)) return change(store, known, make);
  return after;
}

export async function deleteAll(store, ids) {
  for (const id of ids) unstoredOf(store).delete(id);
  await writing([store], (objects) => ids.forEach((id) => objects[store].delete(id)));
  await writeUnstored();
}

/** The conversation with its messages and their files, whoever has stored them. */
export async function deleteWhole(conversationId) {
  const newer = merged("messages", [], (one) => one.conversationId === conversationId);
  for (const message of newer) {
    for (const id of blobsOf(message)) unstoredOf("blobs").delete(id);
    unstoredOf("messages").delete(message.id);
  }
  unstoredOf("conversations").delete(conversationId);
  await writing(["conversations", "messages", "blobs"], ({ conversations, messages, blobs }) => {
    conversations.delete(conversationId);
    messages.index("conversationId").openCursor(conversationId).onsuccess = (event) => {
      const cursor = event.target.result;
      if (!cursor) return;
      for (const id of blobsOf(cursor.value)) blobs.delete(id);
      cursor.delete();
      cursor.continue();
    };
  });
  await writeUnstored();
}

export const blobsOf = (message) => message.attachments.map((one) => one.blobId).filter(Boolean);

/** There may be room again. */
async function writeUnstored() {
  const all = [...unstored].filter(([, values]) => values.size);
  for (const [store, values] of all) {
    const tried = [...values];
    if (!(await writing([store], (objects) => tried.forEach(([, value]) => objects[store].put(value))))) return;
    // A value that changed meanwhile is still newer.
    for (const [id, value] of tried) if (values.get(id) === value) values.delete(id);
  }
  if (storageState.peek() === "full" && [...unstored.values()].every((values) => !values.size)) storageState.value = "stored";
}

/** The ids of conversations whose messages have this text, at most `limit` of them. */
export async function searchMessages(text, limit = 200) {
  const wanted = text.toLowerCase();
  const found = new Set();
  const take = (one) => { if ((one.answer?.text ?? one.text ?? "").toLowerCase().includes(wanted)) found.add(one.conversationId); };
  unstoredOf("messages").forEach(take);
  const opened = await database();
  if (!opened) return found;
  return new Promise((resolve, reject) => {
    const request = opened.transaction("messages").objectStore("messages").openCursor();
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const cursor = request.result;
      if (!cursor || found.size >= limit) return resolve(found);
      take(cursor.value);
      return cursor.continue();
    };
  });
}
