/** What the server says of a fault: of a form `{ field: message }`, of anything else one message. */

/** The message alone, also where the server lists faults of fields. */
export function messageOf(error) {
  const detail = error.body?.detail;
  return Array.isArray(detail) && detail.length ? plain(detail[0].msg) : error.message;
}

/** Of each field that the server names. */
export function fieldMessages(error) {
  const detail = error.body?.detail;
  return Array.isArray(detail) ? Object.fromEntries(detail.map((one) => [one.loc.at(-1), plain(one.msg)]).reverse()) : {};
}

const plain = (message) => message.replace(/^Value error, /, "");
