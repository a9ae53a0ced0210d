/** The tree of messages of a conversation: questions and answers branch where somebody edits or asks again. */

export const ROOT = "";

/** Children of every message, oldest first: Map of parent id ("" for the roots) to ids. */
export function childrenOf(messages) {
  const children = new Map();
  const sorted = [...messages].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
  for (const message of sorted) {
    const parent = message.parentId ?? ROOT;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(message.id);
  }
  return children;
}

/** The ids that are shown, from the root down: at each message the selected child, else the newest. */
export function pathOf(children, selected) {
  const path = [];
  let parent = ROOT;
  while (children.has(parent) && path.length <= children.size) {
    const ids = children.get(parent);
    parent = ids.includes(selected[parent]) ? selected[parent] : ids.at(-1);
    path.push(parent);
  }
  return path;
}

/** Where a message stands among those that share its parent: `{ ids, at }`. */
export function siblingsOf(children, message) {
  const ids = children.get(message.parentId ?? ROOT) ?? [message.id];
  return { ids, at: ids.indexOf(message.id) };
}

/** `selected` with this message on the path that is shown. */
export function selecting(selected, message) {
  return { ...selected, [message.parentId ?? ROOT]: message.id };
}

/** The message and all below it. */
export function branchOf(children, id) {
  const branch = [id];
  for (let at = 0; at < branch.length; at++) branch.push(...(children.get(branch[at]) ?? []));
  return branch;
}

/** The messages from the root to this one. */
export function lineTo(messages, id) {
  const line = [];
  for (let one = messages.get(id); one && line.length <= messages.size; one = messages.get(one.parentId)) line.unshift(one);
  return line;
}
