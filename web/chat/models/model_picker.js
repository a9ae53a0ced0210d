/** Which model answers: calls `onChange(id)`. */

export function ModelPicker() {
  return null;
}
