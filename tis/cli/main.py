"""All commands of `tis`: `serve`, those that fetch, talk, measure and keep, `tis --version`, and `python main.py`.

Slow imports are inside the functions, so that Ctrl-C during an import prints no traceback.
"""

import argparse
import sys
from collections.abc import Sequence

from tis import __version__
from tis.cli.ctrl_c import until_ctrl_c
from tis.observability.collector import without_collections


def main(arguments: Sequence[str] | None = None) -> None:
    until_ctrl_c(lambda: _run(arguments))


def serve_lazily() -> None:
    """`python main.py`: loads the model at the first request, unless EAGER_LOAD_MODEL is set."""

    def run() -> None:
        with without_collections():
            from tis.cli.serve import run_lazily

        run_lazily()

    until_ctrl_c(run)


def parser() -> argparse.ArgumentParser:
    from tis.cli import backup, bench, chat, doctor, download, flags, keys, models, seed, serve, top
    from tis.cli.restart import NO_RESTART

    parser = argparse.ArgumentParser(
        prog="tis", description="Models of your own behind the OpenAI API.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"tis {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    served = commands.add_parser(
        "serve",
        help="serve a model",
        usage="tis serve [MODEL] [FLAG ...]",
        description=serve.DESCRIPTION,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    flags.add_flags(served)
    served.add_argument(
        NO_RESTART, action="store_true", help="end with code 70 after a fault of the device, instead of starting again"
    )
    for name, command, about in (
        ("chat", chat, "talk with a model in the terminal"),
        ("top", top, "show what a server does now"),
        ("bench", bench, "measure how fast a server answers"),
        ("doctor", doctor, "say what this machine has, and what is slow and why"),
        ("models", models, "list the models of the catalogue"),
        ("download", download, "fetch models from the Hugging Face hub"),
        ("keys", keys, "add, list and revoke API keys"),
        ("backup", backup, "copy the SQLite files of a running server"),
    ):
        added = commands.add_parser(
            name,
            help=about,
            description=command.DESCRIPTION,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_arguments(added)
    seed.add_arguments(
        commands.add_parser(
            "seed", help="fill the marketplace with samples", description=seed.DESCRIPTION, allow_abbrev=False
        )
    )
    return parser


def _run(arguments: Sequence[str] | None) -> None:
    from tis.cli.restart import CAN_SHOW_A_KILL, NO_RESTART, obey_parent, run_with_restarts

    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["serve"] and NO_RESTART not in given:
        sys.exit(run_with_restarts(given))
    can_be_killed = obey_parent() and CAN_SHOW_A_KILL
    with without_collections():
        from tis.cli import backup, bench, chat, doctor, download, keys, models, seed, serve, top

    commands = parser()
    parsed = commands.parse_args(given)
    if parsed.command is None:
        commands.print_help()
        sys.exit(2)
    on_servers = {
        "serve": serve.run_as_child if can_be_killed else serve.run,
        "chat": chat.run,
        "top": top.run,
        "bench": bench.run,
        "doctor": doctor.run,
    }
    on_files = {
        "models": models.run,
        "download": download.run,
        "keys": keys.run,
        "seed": seed.run,
        "backup": backup.run,
    }
    (on_servers | on_files | {"backup": backup.run})[parsed.command](parsed)
