/** What the chat keeps in this browser: a small wrapper of IndexedDB. Where that is forbidden, memory takes its place. */

const NAME = "tis-chat";
/** Each entry makes the stores of one version out of the one before. Never change one: add another. */
const VERSIONS = [
  (database) => {
    database.createObjectStore("conversations", { keyPath: "id" });
    database.createObjectStore("messages", { keyPath: "id" }).createIndex("conversationId", "conversationId");
    database.createObjectStore("blobs", { keyPath: "id" });
    database.createObjectStore("kept", { keyPath: "id" });
  },
];

let opening = null;

function database() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, VERSIONS.length);
    request.onupgradeneeded = (event) => VERSIONS.slice(event.oldVersion).forEach((make) => make(request.result));
    request.onsuccess = () => {
      // Another tab with a newer version of the page waits for this one to let go.
      request.result.onversionchange = () => { request.result.close(); opening = null; };
      resolve(request.result);
    };
    request.onerror = () => reject(request.error);
  });
  return opening;
}

const memory = new Map();
let isInMemory = typeof indexedDB === "undefined";

/** True where nothing outlives the page. */
export function storesInMemory() {
  return isInMemory;
}

async function inStore(store, mode, work) {
  if (!isInMemory) {
    let opened;
    try {
      opened = await database();
    } catch {
      isInMemory = true;
    }
    if (opened) return inTransaction(opened, store, mode, work);
  }
  if (!memory.has(store)) memory.set(store, new Map());
  return work.inMemory(memory.get(store));
}

function inTransaction(opened, store, mode, work) {
  return new Promise((resolve, reject) => {
    const transaction = opened.transaction(store, mode);
    let result;
    transaction.oncomplete = () => resolve(result);
    transaction.onerror = transaction.onabort = () => reject(transaction.error);
    work.inDatabase(transaction.objectStore(store), (value) => { result = value; });
  });
}

export function readOne(store, id) {
  return inStore(store, "readonly", {
    inDatabase: (objects, give) => { objects.get(id).onsuccess = (event) => give(event.target.result); },
    inMemory: (objects) => objects.get(id),
  });
}

export function readAll(store) {
  return inStore(store, "readonly", {
    inDatabase: (objects, give) => { objects.getAll().onsuccess = (event) => give(event.target.result); },
    inMemory: (objects) => [...objects.values()],
  });
}

export function readMessagesOf(conversationId) {
  return inStore("messages", "readonly", {
    inDatabase: (objects, give) => { objects.index("conversationId").getAll(conversationId).onsuccess = (event) => give(event.target.result); },
    inMemory: (objects) => [...objects.values()].filter((one) => one.conversationId === conversationId),
  });
}

/** Writes all or none. */
export function writeAll(store, values) {
  return inStore(store, "readwrite", {
    inDatabase: (objects) => values.forEach((value) => objects.put(value)),
    inMemory: (objects) => values.forEach((value) => objects.set(value.id, structuredClone(value))),
  });
}

export const writeOne = (store, value) => writeAll(store, [value]);

/** Writes `value` unless what is there is further (`isFurther(stored)`): two tabs save the same answer. */
export function writeUnless(store, value, isFurther) {
  return inStore(store, "readwrite", {
    inDatabase: (objects) => {
      objects.get(value.id).onsuccess = (event) => { if (!event.target.result || !isFurther(event.target.result)) objects.put(value); };
    },
    inMemory: (objects) => objects.set(value.id, structuredClone(value)),
  });
}

export function deleteAll(store, ids) {
  return inStore(store, "readwrite", {
    inDatabase: (objects) => ids.forEach((id) => objects.delete(id)),
    inMemory: (objects) => ids.forEach((id) => objects.delete(id)),
  });
}

/** The ids of conversations whose messages have this text, at most `limit` of them. */
export function searchMessages(text, limit = 200) {
  const wanted = text.toLowerCase();
  const matches = (one) => (one.answer?.text ?? one.text ?? "").toLowerCase().includes(wanted);
  return inStore("messages", "readonly", {
    inDatabase: (objects, give) => {
      const found = new Set();
      objects.openCursor().onsuccess = (event) => {
        const cursor = event.target.result;
        if (!cursor || found.size >= limit) return give(found);
        if (matches(cursor.value)) found.add(cursor.value.conversationId);
        cursor.continue();
      };
    },
    inMemory: (objects) => new Set([...objects.values()].filter(matches).map((one) => one.conversationId)),
  });
}
