/** The calls of tools that an answer made: calls `onApprove(step)` and `onRefuse(step)`. */

export function Steps() {
  return null;
}
