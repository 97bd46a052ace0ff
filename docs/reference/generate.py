"""Write the pages of the reference that say what the program itself says: scenario keys, components, the command.

    python docs/reference/generate.py [FOLDER]

`tests/commands` fails where a page in the repository is not what this writes (`make pages` writes them).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Written by docs/reference/generate.py from what the program says of itself: do not edit. -->\n"
Schema = dict[str, Any]


def main() -> None:
    """Write all pages."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, text in pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def pages() -> dict[str, str]:
    """Name and text of every generated page."""
    catalogue = json.loads(output("ackclock", "list", "--json"))
    components = [one for kind in catalogue.values() for one in kind if one["name"] != "result"]
    schemas = [one["schema"] for one in components if one["schema"]]
    tables = catalogue.pop("tables")
    presets = catalogue.pop("presets")
    return {
        "scenario.md": NOTE + scenario_page(tables, presets) + values(schemas),
        "components.md": NOTE + components_page(catalogue),
        "json.md": NOTE + json_page(tables[2]),
        "command.md": NOTE + command_page(),
        "models.md": NOTE + models_page(json.loads(output("ackclock", "list", "models", "--json"))["models"]),
    }


def output(*command: str) -> str:
    """What a command prints."""
    # The help must not depend on the terminal in which it is asked for.
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    run = subprocess.run(command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    return run.stdout


@dataclass(frozen=True)
class Key:
    """A key of a table, with dots where it stands in a table below."""

    path: str
    default: Any
    schema: Schema
    root: Schema

    def row(self) -> str:
        """Its row."""
        return f"| `{self.path}` | {default_of(self.default)} | {allowed(self.schema, self.root)} | {meaning(self)} |"


def default_of(value: Any) -> str:
    """A default as a scenario writes it."""
    return "" if value in (None, [], {}) or isinstance(value, list) else f"`{json.dumps(value)}`"


def meaning(key: Key) -> str:
    """What a key is documented to mean."""
    return key.schema.get("description", "").replace("\n", " ").replace("|", "\\|")


def keys(schema: Schema, defaults: Any, root: Schema, prefix: str = "", around: tuple[int, ...] = ()) -> Iterator[Key]:
    """The keys of a table, of the tables in it and of those in its lists; a table within one like itself is one key."""
    around = (*around, id(schema))
    for name, of in schema.get("properties", {}).items():
        default = defaults.get(name) if isinstance(defaults, dict) else of.get("default")
        inner = resolved(required(of), root)
        if "properties" not in inner or id(inner) in around:
            yield Key(prefix + name, default, of, root)
            # The tables of a list, as of outages.
            yield from keys(resolved(inner.get("items", {}), root), None, root, f"{prefix}{name}[].", around)
        else:
            yield from keys(inner, default, root, f"{prefix}{name}.", around)


def required(schema: Schema) -> Schema:
    """The schema of what may be left out, where it is there."""
    choices = [one for one in schema.get("anyOf", []) if one != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


def resolved(schema: Schema, root: Schema) -> Schema:
    """The schema that a reference means."""
    reference = schema.get("$ref")
    return root["$defs"][reference.rsplit("/", 1)[1]] if reference else schema


def allowed(schema: Schema, root: Schema) -> str:
    """What may stand there, in words."""
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    inner = resolved(schema, root)
    if "const" in inner:
        return f"`{json.dumps(inner['const'])}`"
    for choices in ("enum", "oneOf", "anyOf"):
        if choices in inner:
            words = [f"`{json.dumps(c)}`" if choices == "enum" else allowed(c, root) for c in inner[choices]]
            return ", ".join(word for word in words if word not in ("", "`null`"))
    kind = inner.get("type", "a name, or a table with `kind`")
    if name and is_value(kind):
        return f"[{name}](value-{name.lower()})"
    kinds = [one for one in (kind if isinstance(kind, list) else [kind]) if one != "null"]
    return ", ".join(kinds)


def is_value(kind: Any) -> bool:
    """Whether a type of a schema is that of a value which is explained once."""
    return kind in ("string", "number", ["number", "string"], ["number", "string", "object"])


def key_table(found: list[Key]) -> str:
    """The keys of a table as a table."""
    if not found:
        return "Its table has no keys.\n"
    return "| key | default | allowed | meaning |\n| --- | --- | --- | --- |\n" + "".join(f"{k.row()}\n" for k in found)


def values(schemas: list[Schema]) -> str:
    """The kinds of values that the keys of these tables take, each explained once."""
    explained: dict[str, str] = {}
    for schema in schemas:
        for name, of in schema.get("$defs", {}).items():
            if is_value(of.get("type")) and "description" in of and "enum" not in of:
                explained[name] = of["description"].replace("\n", " ")
    rows = (
        f"(value-{name.lower()})=\n### {name}\n\n{text[0].upper()}{text[1:]}\n"
        for name, text in sorted(explained.items())
    )
    return "\n## Values\n\n" + "\n".join(rows)


def scenario_page(tables: list[Schema], presets: list[Schema]) -> str:
    """The tables of the file itself, and the presets."""
    scenario, flow, _, *others = tables
    everything = keys(scenario["schema"], scenario["defaults"], scenario["schema"])
    # Those of a flow have a table of their own, with their defaults.
    found = [key for key in everything if not key.path.startswith("flow[]")]
    head = """# Scenario file

A scenario is a TOML file. Every key has a default; a `preset` changes defaults, and what the file says overrides both.
A component is written as its name (`regulator = "ack-regulator"`) or as a table with the name under `kind` and its own
keys ([components](components.md)). A key that does not exist, a unit that is wrong or a value that is impossible is an
error that names file, line, key and what is allowed.

`--set KEY=VALUE` (`set=` in Python) lays a value on the file; a flow key without number means every flow. A component
that is given another kind keeps the keys that the new kind knows; the others are dropped, and named. A key that
`[sweep]` varies has the value that is set at every point. `ackclock check --show` prints the whole configuration with
every key, as a scenario.

"""
    text = head + key_table(found)
    text += f"\n## `[[flow]]`\n\n{flow['description']}\n\n" + key_table(
        list(keys(flow["schema"], flow["defaults"], flow["schema"]))
    )
    for table in others:
        text += f"\n## `[{table['name']}]`\n\n{table['description']}\n\n" + key_table(
            list(keys(table["schema"], table["defaults"], table["schema"]))
        )
    text += "\n## Presets\n\n" + "".join(f"`{preset['name']}`\n: {preset['description']}\n\n" for preset in presets)
    return text.rstrip("\n") + "\n"


def components_page(catalogue: dict[str, list[Schema]]) -> str:
    """Everything that a scenario can name."""
    text = """# Components

What a scenario can name, with the keys of its table. `ackclock list` prints the same.
"""
    for kind, components in catalogue.items():
        text += f"\n## {kind.capitalize()}\n\n"
        for names, component in alike(components):
            for one in names:
                text += f"`{one['name']}`\n: {one['description'].replace(chr(10), ' ')}\n\n"
            text += key_table(list(keys(component["schema"], component["defaults"], component["schema"])))
            text += differing(names) + chosen(component["schema"], component["defaults"]) + "\n"
    return text.rstrip("\n") + "\n"


def alike(components: list[Schema]) -> Iterator[tuple[list[Schema], Schema]]:
    """Components with the same keys, together."""
    groups: dict[str, list[Schema]] = {}
    for component in components:
        shape = component["schema"].get("properties", {})
        groups.setdefault(json.dumps(shape if len(shape) else component["name"]), []).append(component)
    for group in groups.values():
        yield group, group[0]


def differing(group: list[Schema]) -> str:
    """The defaults in which components with the same keys differ."""
    first, *others = group
    lines = []
    for other in others:
        for key, value in other["defaults"].items():
            if value != first["defaults"].get(key):
                lines.append(f"- `{other['name']}`: `{key}` is {default_of(value)}")
    return "\nDefaults that differ:\n\n" + "\n".join(lines) + "\n" if lines else ""


def chosen(schema: Schema, defaults: Any) -> str:
    """The defaults that the value of a key chooses (`x-defaults` of its schema)."""
    text = ""
    for key, of in schema.get("properties", {}).items():
        for value, others in of.get("x-defaults", {}).items():
            before = {one.path: one.default for one in keys(schema, defaults, schema)}
            after = {one.path: one.default for one in keys(schema, others, schema)}
            differ = {path: one for path, one in after.items() if one not in (None, before[path]) and path != key}
            lines = [f"- `{path}` is {default_of(one)}" for path, one in differ.items()]
            text += f"\nDefaults with `{key} = {json.dumps(value)}`, whatever the row:\n\n" + "\n".join(lines) + "\n"
    return text


def json_page(result: Schema) -> str:
    """The object that `--json` prints."""
    text = """# Results

`--json` prints one object a run, a line each. Names and meanings are a contract. A number that does not exist is
`null`, never 0; equal runs print equal bytes, which is why `engine.cpu_s` is null without `--timing`. A sweep or
comparison adds `point`, the keys of the combination with their values.

| field | type | meaning |
| --- | --- | --- |
"""
    schema = result["schema"]
    return text + "".join(f"| `{path}` | {kind} | {said} |\n" for path, kind, said in fields(schema, schema))


def fields(schema: Schema, root: Schema, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Path, type and meaning of every field; what stands in lists has `[]` in its path."""
    for name, of in schema.get("properties", {}).items():
        path, said = prefix + name, of.get("description", "").replace("\n", " ")
        inner, is_list = not_null(of, root), of.get("type") == "array"
        if is_list:
            inner, path = resolved(of["items"], root), path + "[]"
        if "properties" in inner:
            yield path, "list of objects" if is_list else "object" + or_null(of), said
            yield from fields(inner, root, path + ".")
        else:
            yield path, allowed(of, root) + or_null(of), said


def or_null(schema: Schema) -> str:
    """Whether a field may be null."""
    choices = [schema, *schema.get("anyOf", [])]
    return " or null" if any("null" in (choice.get("type") or ()) for choice in choices) else ""


def not_null(schema: Schema, root: Schema) -> Schema:
    """What a field is where it is not null."""
    for choice in schema.get("anyOf", []):
        if choice.get("type") != "null":
            return resolved(choice, root)
    return resolved(schema, root)


def command_page() -> str:
    """The help of every command."""
    text = "# Command\n\n" + help_of()
    for command in commands():
        text += f"\n## `ackclock {command}`\n\n" + help_of(*command.split())
    return text


def commands() -> Iterator[str]:
    """The commands, and those below them, as the help lists them."""
    for name in listed(output("ackclock", "--help")):
        text = output("ackclock", name, "--help")
        below = [f"{name} {one}" for one in listed(text)]
        # `link` has commands below it and work of its own.
        yield from below if below and "\nArguments:\n" not in text else [name, *below]


def models_page(models: list[dict[str, Any]]) -> str:
    """What every model computes, from its file."""
    text = """# Models

The analyses of `ackclock model NAME`, each with its source, its equations, where it departs from the source, and how it
is validated. Arguments are described under [command](command.md). With `--json` an answer is one object: `model`,
`arguments`, and `result` with the values by name, whose ends are their units. In Python each is a module of
`ackclock.models`.
"""
    for model in models:
        examples = "".join(f"{line}\n" for line in model["examples"])
        text += f"\n## {model['name']}\n\n```text\n{model['documentation']}\n\n{examples}```\n"
    return text


def listed(text: str) -> list[str]:
    """The names under `Commands:` in a help text."""
    lines = text.split("\nCommands:\n")[1].split("\n\n")[0].splitlines() if "\nCommands:\n" in text else []
    names = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]
    return [name for name in names if name != "help"]


def help_of(*command: str) -> str:
    """The help of one command as a block."""
    text = output("ackclock", *command, "--help")
    return "```text\n" + "".join(f"{line.rstrip()}\n" for line in text.splitlines()) + "```\n"


if __name__ == "__main__":
    main()
