"""This server against vLLM, llama.cpp and `transformers serve`, on one machine, in alternation, with one random model.

    python benchmarks/compare.py --model-folder FOLDER [--systems ours,vllm,llama.cpp] [--clients 1,4,8,16] [--rounds 3]
        [--vllm PATH] [--llama-server PATH]

Every system is started once and warmed up with as many clients as it will have. A round measures each number of clients
on one system after the other; whoever is not measured is stopped (SIGSTOP), as some servers spin when they wait. The
order changes from round to round, and no prompt is sent twice to a system. The model is built into the folder once
(`random_model.py`); what the servers write goes there too. Decision 0088 says how to install the others.
"""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from chat import ChatResult, ChatServer, Load, measure, prompt_text, run_on_fast_loop, table_heading, table_row
from comparison_table import Speed, speed_table
from contenders import SYSTEMS, Contender, Programs, RunningServer, contender, started, version
from random_model import build_model, words_for

_CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
Results = dict[str, dict[int, list[ChatResult]]]


def compare(options: argparse.Namespace) -> Results:
    folder = options.model_folder.resolve()
    build_model(folder)
    load = Load(
        requests_each=options.requests,
        warm_up_each=0,
        prompt_tokens=words_for(folder, options.prompt_tokens),
        max_tokens=options.max_tokens,
        extra={"temperature": 0},
    )
    with ExitStack() as stack:
        servers = []
        for one in chosen_contenders(options, folder):
            print(f"{one.name} {version(one)}", end="", flush=True)
            servers.append(stack.enter_context(started(one, folder / f"{one.name}.log".replace(" ", "-"))))
            print(f" answers {servers[-1].greeting!r}", end="", flush=True)
            warm_up = replace(load, requests_each=1, prompt_seed="warm up:")
            result = _measure(servers[-1], max(options.clients), warm_up)
            if fault := fault_of(result, load.max_tokens):
                raise SystemExit(f" but then: {fault}")
            print(f", counts {result.mean_prompt_tokens} tokens in a prompt", flush=True)
            servers[-1].pause()
        results = alternate(servers, load, options.clients, options.rounds)
        for server in servers if options.second_turn else ():
            server.resume()
            share = second_turn(server.url, server.contender.model, words_for(folder, 2000))
            print(f"{server.contender.name}: second turn behind 2,000 tokens {share:.3f} of the cold time to a token")
            server.pause()
    return results


def chosen_contenders(options: argparse.Namespace, folder: Path) -> list[Contender]:
    programs = Programs.find(options.vllm, options.llama_server)
    systems = options.systems or [one for one in programs.installed() if not one.startswith("transformers")]
    context = max(1024, 2 * (options.prompt_tokens + options.max_tokens))
    chosen = []
    for system in systems:
        made = contender(system, folder, programs, max(options.clients), context)
        more = [text for name, text in options.option if name == system]
        variables = dict(text.split("=", 1) for name, text in options.variable if name == system)
        chosen.append(replace(made, command=[*made.command, *more], variables={**made.variables, **variables}))
    return chosen


def alternate(servers: Sequence[RunningServer], load: Load, clients: Sequence[int], rounds: int) -> Results:
    results: Results = {server.contender.name: {number: [] for number in clients} for server in servers}
    for turn in range(rounds):
        first = turn % len(servers)
        print(f"\nround {turn + 1}\n{'':<30}{table_heading()}", flush=True)
        for number in clients:
            for server in [*servers[first:], *servers[:first]]:
                server.resume()
                one_short = replace(load, requests_each=1, max_tokens=8, prompt_seed=f"wake {turn}:{number}:")
                _measure(server, 1, one_short)
                result = _measure(server, number, replace(load, prompt_seed=f"{turn}:{number}:"))
                server.pause()
                results[server.contender.name][number].append(result)
                print(f"{server.contender.name:<30}{table_row(result)} {fault_of(result, load.max_tokens)}", flush=True)
    return results


def _measure(server: RunningServer, clients: int, load: Load) -> ChatResult:
    return measure(server.url, server.contender.model, clients, load)


def fault_of(result: ChatResult, max_tokens: int) -> str:
    """Why a result cannot be compared: every answer has to have all the tokens that were asked for."""
    expected = result.requests * max_tokens
    if result.tokens == expected and not result.errors:
        return ""
    return f"{result.tokens} of {expected} tokens {result.first_error or ''}"


def second_turn(url: str, model: str, num_words: int) -> float:
    """Time of a one-token answer behind a long text that was just asked about, as a share of the first one's."""

    async def answer_time(question: str) -> float:
        text = prompt_text(num_words, "long")
        messages = [{"role": "system", "content": text}, {"role": "user", "content": question}]
        body = {"model": model, "messages": messages, "max_tokens": 1, "temperature": 0}
        began = time.perf_counter()
        async with ChatServer(url).request("POST", "/chat/completions", json.dumps(body).encode()) as parts:
            async for _ in parts:
                pass
        return time.perf_counter() - began

    cold = run_on_fast_loop(answer_time("What is it about?"))
    return run_on_fast_loop(answer_time("Who is it about?")) / cold


def speeds_of(results: Mapping[str, Mapping[int, Sequence[ChatResult]]]) -> dict[str, dict[int, list[Speed]]]:
    return {
        name: {number: [_speed(result) for result in rounds] for number, rounds in by_clients.items()}
        for name, by_clients in results.items()
    }


def _speed(result: ChatResult) -> Speed:
    first_token = result.first_token_ms.p50
    return Speed(result.tokens_per_second, None if first_token is None else first_token / 1000)


def machine() -> str:
    """Its processor, with what it has for matrices, and its memory."""
    facts = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
    facts = {name.strip(): value.strip() for name, value in facts.items()}
    features = [one for one in _CPU_FEATURES if one in facts.get("flags", "").split()]
    gigabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"{facts.get('model name', 'unknown CPU')}, {cores} cores ({', '.join(features)}), {gigabytes:.0f} GiB"


def _of_a_system(text: str) -> tuple[str, str]:
    system, _, rest = text.partition(":")
    if system not in SYSTEMS or not rest:
        raise argparse.ArgumentTypeError(f"{text!r} does not begin with one of {', '.join(SYSTEMS)} and a colon")
    return system, rest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--model-folder", type=Path, required=True, help="where the model is, or will be built")
    add("--systems", type=lambda text: text.split(","), metavar=",".join(SYSTEMS), help="default: the first three")
    add("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 8, 16], metavar="1,4,8,16")
    add("--rounds", type=int, default=3)
    add("--requests", type=int, default=2, help="of each client in each round")
    add("--prompt-tokens", type=int, default=210)
    add("--max-tokens", type=int, default=32)
    add("--vllm", type=Path, help="default: vllm on the PATH")
    add("--llama-server", type=Path, help="default: llama-server on the PATH")
    add("--option", type=_of_a_system, action="append", default=[], help="vllm:--enforce-eager; may be given again")
    add("--variable", type=_of_a_system, action="append", default=[], help="ours:OMP_WAIT_POLICY=ACTIVE; the same")
    add("--second-turn", action="store_true", help="also time a second turn behind a prefix of 2,000 tokens")
    add("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    results = compare(options)
    print(f"\n{datetime.now(UTC):%d %B %Y}, {machine()}\n\n    python {shlex.join(sys.argv)}\n")
    print(speed_table(speeds_of(results), options.clients, ours="this server"))
    if options.json:
        report = {name: {n: [asdict(r) for r in rs] for n, rs in by.items()} for name, by in results.items()}
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    every = [result for by_clients in results.values() for rounds in by_clients.values() for result in rounds]
    if any(fault_of(result, options.max_tokens) for result in every):
        sys.exit("Some answers failed or were too short, as said above: the table does not hold.")


if __name__ == "__main__":
    main()
