/** A JSON schema of a simple list of fields, the list of a simple schema, and what is wrong with a text that should be a schema. */

export const TYPES = ["text", "number", "whole", "yesno", "choice", "texts"];
export const MAX_FIELDS = 30;
const KNOWN_TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];

/** `fields`: [{ name, type, required, description, options }]; `options` are the choices, one a line. */
export function schemaOf(fields) {
  const named = fields.filter((field) => field.name.trim());
  return {
    type: "object",
    properties: Object.fromEntries(named.map((field) => [field.name.trim(), propertyOf(field)])),
    required: named.filter((field) => field.required).map((field) => field.name.trim()),
    additionalProperties: false,
  };
}

function propertyOf({ type, description, options }) {
  const described = description?.trim() ? { description: description.trim() } : {};
  if (type === "number") return { type: "number", ...described };
  if (type === "whole") return { type: "integer", ...described };
  if (type === "yesno") return { type: "boolean", ...described };
  if (type === "texts") return { type: "array", items: { type: "string" }, ...described };
  const choices = choicesOf(options);
  if (type === "choice" && choices.length) return { enum: choices, ...described };
  return { type: "string", ...described };
}

export function choicesOf(options) {
  return [...new Set((options ?? "").split(/[\n,]/).map((one) => one.trim()).filter(Boolean))];
}

/** Null if the schema has more than such a list can say. */
export function fieldsOf(schema) {
  if (schema?.type !== "object" || !schema.properties || typeof schema.properties !== "object") return null;
  const others = Object.keys(schema).filter((key) => !["type", "properties", "required", "additionalProperties"].includes(key));
  if (others.length || schema.additionalProperties !== false) return null;
  const fields = Object.entries(schema.properties).map(([name, property]) => fieldOf(name, property, (schema.required ?? []).includes(name)));
  return fields.includes(null) ? null : fields;
}

function fieldOf(name, property, required) {
  const { description = "", ...rest } = property;
  const field = { name, required, description, options: "" };
  const is = (plain) => JSON.stringify(rest) === JSON.stringify(plain);
  if (is({ type: "string" })) return { ...field, type: "text" };
  if (is({ type: "number" })) return { ...field, type: "number" };
  if (is({ type: "integer" })) return { ...field, type: "whole" };
  if (is({ type: "boolean" })) return { ...field, type: "yesno" };
  if (is({ type: "array", items: { type: "string" } })) return { ...field, type: "texts" };
  const isChoice = Object.keys(rest).join() === "enum" && rest.enum.every((one) => typeof one === "string" && !/[\n,]/.test(one));
  return isChoice ? { ...field, type: "choice", options: rest.enum.join(", ") } : null;
}

/** Names of the list that cannot be: { index: "empty" | "twice" }. */
export function fieldFaults(fields) {
  const seen = new Set();
  const faults = {};
  fields.forEach(({ name, type, options }, index) => {
    const plain = name.trim();
    if (!plain) faults[index] = "empty";
    else if (seen.has(plain)) faults[index] = "twice";
    else if (type === "choice" && !choicesOf(options).length) faults[index] = "choices";
    seen.add(plain);
  });
  return faults;
}

/** `{ schema }`, or `{ fault, detail }` with fault "json", "object", "type" or "place". */
export function readSchema(text) {
  let schema;
  try {
    schema = JSON.parse(text);
  } catch (fault) {
    return { fault: "json", detail: fault.message };
  }
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return { fault: "object", detail: "" };
  const wrong = wrongPlace(schema, "");
  return wrong ? { fault: wrong.fault, detail: wrong.place || "/" } : { schema };
}

function wrongPlace(schema, place) {
  if (typeof schema === "boolean") return null;
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return { fault: "place", place };
  const types = [schema.type ?? []].flat();
  if (!types.every((type) => KNOWN_TYPES.includes(type))) return { fault: "type", place: `${place}/type` };
  if (schema.required !== undefined && !Array.isArray(schema.required)) return { fault: "required", place: `${place}/required` };
  if (schema.properties !== undefined && (typeof schema.properties !== "object" || schema.properties === null)) return { fault: "place", place: `${place}/properties` };
  const inside = Object.entries(schema.properties ?? {}).map(([name, one]) => [one, `${place}/properties/${name}`]);
  if (schema.items !== undefined) inside.push([schema.items, `${place}/items`]);
  for (const key of ["anyOf", "oneOf", "allOf"]) (schema[key] ?? []).forEach?.((one, number) => inside.push([one, `${place}/${key}/${number}`]));
  for (const [one, where] of inside) {
    const wrong = wrongPlace(one, where);
    if (wrong) return wrong;
  }
  return null;
}
