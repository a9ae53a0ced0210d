/** The database of this browser: how it is opened, transactions in it, and what is the matter with it. */

import { signal } from "../../app/view.js";

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

/**
 * "stored"; "forbidden": nothing outlives the page; "full": what could not be written does not; "outdated": another tab
 * has a newer version of the page, and this one cannot read its database.
 */
export const storageState = signal(typeof indexedDB === "undefined" ? "forbidden" : "stored");

let opening = null;

/** Null where there is none. */
export function database() {
  if (typeof indexedDB === "undefined") return Promise.resolve(null);
  opening ??= open().catch((fault) => {
    storageState.value = fault?.name === "VersionError" ? "outdated" : "forbidden";
    return null;
  });
  return opening;
}

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, VERSIONS.length);
    request.onupgradeneeded = (event) => VERSIONS.slice(event.oldVersion).forEach((make) => make(request.result));
    request.onsuccess = () => {
      const opened = request.result;
      // Another tab with a newer version of the page waits for this one to let go.
      opened.onversionchange = () => { opened.close(); opening = null; };
      opened.onclose = () => { opening = null; };
      resolve(opened);
    };
    request.onerror = () => reject(request.error);
  });
}

/** What `ask(objects)`, a request to a store, finds; undefined where there is no database. */
export async function reading(store, ask) {
  const opened = await database();
  if (!opened) return undefined;
  return new Promise((resolve, reject) => {
    const request = ask(opened.transaction(store).objectStore(store));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Does `work(objects)` with stores by their names: all of it, and true, or nothing. */
export async function writing(stores, work) {
  const opened = await database();
  if (!opened) return false;
  try {
    await committed(opened.transaction(stores, "readwrite"), stores, work);
    return true;
  } catch (fault) {
    if (fault?.name === "DataCloneError") throw fault;
    storageState.value = "full";
    return false;
  }
}

function committed(transaction, stores, work) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
    try {
      work(Object.fromEntries(stores.map((name) => [name, transaction.objectStore(name)])));
    } catch (fault) {
      transaction.abort();
      reject(fault);
    }
  });
}
