/** Where the time of a request went: its phases, from the times of GET /v1/requests/recent. */

export const KINDS = ["prepare", "load", "queue", "prefill", "decode", "compute", "call", "send"];

/** The phases of one round of the model: `[{ kind, from, to }]`, in seconds since the request arrived. */
export function phasesOfRound(round, until) {
  const end = round.ended ?? round.last_token ?? until;
  const found = [];
  const add = (kind, from, to) => { if (from !== null && to !== null && to > from) found.push({ kind, from, to }); };
  add("queue", round.queued, round.started ?? round.first_token ?? end);
  if (round.first_token === null) add("compute", round.started, end);
  else {
    add("prefill", round.started ?? round.queued, round.first_token);
    add("decode", round.first_token, round.last_token ?? end);
  }
  return found;
}

/** Of the whole request, one after the other. What is between two rounds are calls of tools. */
export function phasesOf(request) {
  const whole = spanOf(request);
  const found = [];
  let at = 0;
  for (const round of request.rounds) {
    if (round.queued > at) found.push(...(at === 0 ? preparing(request, round.queued) : [{ kind: "call", from: at, to: round.queued }]));
    for (const phase of phasesOfRound(round, whole)) {
      const from = Math.max(at, phase.from);
      if (phase.to > from) found.push({ ...phase, from });
      at = Math.max(at, phase.to);
    }
    at = Math.max(at, round.queued);
  }
  if (whole > at) found.push(...(request.rounds.length ? [{ kind: "send", from: at, to: whole }] : preparing(request, whole)));
  return found;
}

/** Up to the queue: the last thing that a request waits for is its model. */
function preparing(request, until) {
  const ready = Math.max(0, until - (request.loading ?? 0));
  return [{ kind: "prepare", from: 0, to: ready }, { kind: "load", from: ready, to: until }].filter((one) => one.to > one.from);
}

/** An answer goes on when its client has left. */
export function spanOf(request) {
  return Math.max(request.seconds, ...request.rounds.map((round) => round.ended ?? round.last_token ?? 0));
}

export function firstTokenOf(request) {
  const firsts = request.rounds.map((round) => round.first_token).filter((value) => value !== null);
  return firsts.length ? Math.min(...firsts) : null;
}

/** Tokens a second after the first token; null for answers of one token. */
export function speedOf(request) {
  let tokens = 0;
  let seconds = 0;
  for (const round of request.rounds) {
    if (round.completion_tokens > 1 && round.last_token > round.first_token) {
      tokens += round.completion_tokens - 1;
      seconds += round.last_token - round.first_token;
    }
  }
  return seconds > 0 ? tokens / seconds : null;
}

/** Sums of each kind: `[[kind, seconds]]`, in the order of KINDS. */
export function sumsOf(phases) {
  return KINDS.map((kind) => [kind, phases.filter((one) => one.kind === kind).reduce((sum, one) => sum + one.to - one.from, 0)]).filter(([, seconds]) => seconds > 0);
}
