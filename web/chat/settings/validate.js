/** Checks a value against a JSON schema, in the page: the keywords that the server enforces. Returns a list of `{ place, fault, detail }`. */

const MAX_FAULTS = 20;
const MAX_DEPTH = 64;

export function faultsOf(value, schema) {
  const faults = [];
  check(value, schema, "", { root: schema, faults, depth: 0 });
  return faults.slice(0, MAX_FAULTS);
}

function check(value, schema, place, context) {
  if (schema === true || schema === undefined || context.depth > MAX_DEPTH || context.faults.length >= MAX_FAULTS) return;
  const add = (fault, detail = "") => context.faults.push({ place: place || "/", fault, detail: String(detail) });
  if (schema === false) return add("forbidden");
  const within = { ...context, depth: context.depth + 1 };
  if (schema.$ref) check(value, resolved(schema.$ref, context.root), place, within);
  if (schema.type !== undefined && ![schema.type].flat().some((type) => isOf(value, type))) return add("type", [schema.type].flat().join(", "));
  if (schema.enum && !schema.enum.some((one) => same(one, value))) add("enum", schema.enum.map((one) => JSON.stringify(one)).join(", "));
  if ("const" in schema && !same(schema.const, value)) add("enum", JSON.stringify(schema.const));
  if (typeof value === "number") checkNumber(value, schema, add);
  if (typeof value === "string") checkText(value, schema, add);
  if (Array.isArray(value)) checkList(value, schema, place, within, add);
  else if (value !== null && typeof value === "object") checkObject(value, schema, place, within, add);
  for (const one of schema.allOf ?? []) check(value, one, place, within);
  const passing = (list) => list.filter((one) => faultsWithin(value, one, within) === 0).length;
  if (schema.anyOf && passing(schema.anyOf) === 0) add("any");
  if (schema.oneOf && passing(schema.oneOf) !== 1) add("any");
  if (schema.not !== undefined && faultsWithin(value, schema.not, within) === 0) add("forbidden");
}

function faultsWithin(value, schema, context) {
  const faults = [];
  check(value, schema, "", { ...context, faults });
  return faults.length;
}

function checkNumber(value, schema, add) {
  if (value < schema.minimum || value <= schema.exclusiveMinimum) add("min", schema.minimum ?? schema.exclusiveMinimum);
  if (value > schema.maximum || value >= schema.exclusiveMaximum) add("max", schema.maximum ?? schema.exclusiveMaximum);
  if (schema.multipleOf && Math.abs(value / schema.multipleOf - Math.round(value / schema.multipleOf)) > 1e-9) add("multiple", schema.multipleOf);
}

function checkText(value, schema, add) {
  const length = [...value].length;
  if (length < schema.minLength) add("short", schema.minLength);
  if (length > schema.maxLength) add("long", schema.maxLength);
  if (schema.pattern === undefined) return;
  try {
    if (!new RegExp(schema.pattern, "u").test(value)) add("pattern", schema.pattern);
  } catch {
    // The server knows patterns (of Rust) that a browser does not: it has enforced them.
  }
}

function checkList(value, schema, place, context, add) {
  if (value.length < schema.minItems) add("short", schema.minItems);
  if (value.length > schema.maxItems) add("long", schema.maxItems);
  if (schema.uniqueItems && new Set(value.map((one) => JSON.stringify(one))).size < value.length) add("unique");
  const first = schema.prefixItems ?? [];
  value.forEach((one, number) => check(one, number < first.length ? first[number] : schema.items, `${place}/${number}`, context));
}

function checkObject(value, schema, place, context, add) {
  for (const name of schema.required ?? []) if (!Object.hasOwn(value, name)) add("missing", name);
  for (const [name, one] of Object.entries(value)) {
    const known = schema.properties && Object.hasOwn(schema.properties, name);
    if (known) check(one, schema.properties[name], `${place}/${name}`, context);
    else if (schema.additionalProperties === false) add("extra", name);
    else if (typeof schema.additionalProperties === "object") check(one, schema.additionalProperties, `${place}/${name}`, context);
  }
}

function isOf(value, type) {
  if (type === "integer") return Number.isInteger(value);
  if (type === "array") return Array.isArray(value);
  if (type === "null") return value === null;
  if (type === "object") return value !== null && typeof value === "object" && !Array.isArray(value);
  return typeof value === type;
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** "#/$defs/person", inside the same schema. */
function resolved(reference, root) {
  if (!reference.startsWith("#")) return true;
  return reference.slice(1).split("/").filter(Boolean).reduce((at, name) => at?.[name.replaceAll("~1", "/").replaceAll("~0", "~")], root) ?? true;
}
