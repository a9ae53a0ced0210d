"""Every setting is a flag of `tis serve`; some have a second name, which other servers use."""

import argparse
from collections.abc import Iterator

from pydantic.fields import FieldInfo

from tis.setting_types import SettingsError, as_written, variable_name
from tis.settings import AREAS

# Names before the setting's own; help and errors show the first one.
_NAMES = {
    "model_repo_id": ("--model",),
    "api_keys": ("--api-key",),
    "device_map": ("--device",),
    "torch_dtype": ("--dtype",),
    "adapters": ("--adapter",),
    "max_context_tokens": ("--max-model-len",),
    "max_batch_size": ("--max-num-seqs",),
    "max_batch_tokens": ("--max-num-batched-tokens",),
    "eager_load_model": ("--eager",),
}
_REPEATABLE = ("api_keys", "adapters")


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help="hub id, local folder, catalogue id, or `echo`")
    for area in AREAS:
        group = parser.add_argument_group(str(area.__doc__))
        for name, field in area.model_fields.items():
            _add_flag(group, name, field)


def parsed_flags(parsed: argparse.Namespace) -> dict[str, tuple[str, str]]:
    """Maps the name of each setting that is set to its flag, for error messages, and its value."""
    flags = dict(_parsed_flags(parsed))
    for flag, value in flags.values():
        if not value:  # an empty shell variable must not undo API_KEYS of the environment
            raise SettingsError(f"{flag} is empty: give it a value, or leave it out.")
    return flags


def _parsed_flags(parsed: argparse.Namespace) -> Iterator[tuple[str, tuple[str, str]]]:
    if parsed.model is not None:
        if "model_repo_id" in vars(parsed):
            raise SettingsError("name the model once: `tis serve MODEL`, or --model.")
        yield "model_repo_id", ("MODEL", parsed.model)
    for area in AREAS:
        for name in area.model_fields:
            if name not in vars(parsed):
                continue
            value = getattr(parsed, name)
            if isinstance(value, bool):
                yield name, (_flags_of(name)[0], str(int(value)))
            else:
                yield name, (_flags_of(name)[0], ",".join(value) if isinstance(value, list) else value)


def _add_flag(group: argparse._ArgumentGroup, name: str, field: FieldInfo) -> None:
    variable, default = variable_name(name), as_written(field.default)
    about = f"{field.description} [{variable}{f'={default}' if default else ''}]".replace("%", "%%")
    # SUPPRESS: a flag that is not given leaves no attribute, so the environment decides.
    if field.annotation is bool:
        group.add_argument(
            *_flags_of(name), dest=name, default=argparse.SUPPRESS, action=argparse.BooleanOptionalAction, help=about
        )
    else:
        group.add_argument(
            *_flags_of(name),
            dest=name,
            default=argparse.SUPPRESS,
            action="append" if name in _REPEATABLE else "store",
            metavar="VALUE",
            help=about,
        )


def _flags_of(name: str) -> tuple[str, ...]:
    return (*_NAMES.get(name, ()), "--" + variable_name(name).lower().replace("_", "-"))
