/** The columns of the table of goods, and how what is typed in them becomes a value. */

/** `kind` says what a cell is; those with a field can be edited. */
export const COLUMNS = [
  { id: "choose", kind: "choose" },
  { id: "picture", kind: "picture" },
  { id: "name", kind: "text" },
  { id: "sku", kind: "text", isNullable: true },
  { id: "price", kind: "number", sorts: ["price_asc", "price_desc"] },
  { id: "stock_quantity", kind: "number", sorts: ["stock_asc", "stock_desc"] },
  { id: "category", kind: "text", list: "desk-categories" },
  { id: "condition", kind: "choice", values: ["new", "used"] },
  { id: "is_available", kind: "switch" },
  { id: "actions", kind: "actions" },
];

export const isTyped = ({ kind }) => kind === "text" || kind === "number" || kind === "choice";

/** A number may have separators and its currency. What is none goes to the server as it is, which says what is wrong. */
export function typedValue(column, text) {
  if (column.kind === "number") return numberOf(text) ?? text;
  if (column.isNullable && !text.trim()) return null;
  return text;
}

export function numberOf(text) {
  const digits = text.trim().replace(/^rp\.?\s*/i, "").replace(/[.,\s](?=[0-9]{3}(?:[^0-9]|$))/g, "");
  return /^[0-9]{1,15}$/.test(digits) ? Number(digits) : null;
}
