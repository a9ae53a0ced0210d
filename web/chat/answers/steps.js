/** A call of a tool, as an answer shows it. */

export function newStep(id, more = {}) {
  return { id, kind: "function", server: "", name: "", arguments: "", status: "running", output: null, error: null, approvalId: null, ...more };
}
