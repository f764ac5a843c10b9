"""The command line: ``mcpcore run``, ``mcpcore list``, ``mcpcore call``."""

import argparse
import sys
from collections.abc import Sequence

from mcpcore.cli.commands import call_tool, list_offers, run_server
from mcpcore.cli.loading import LoadError

__all__ = ["main"]

_TARGET = """\
TARGET is one of
  file.py                  a file; the server is looked for as mcp, server, or app
  file.py:object           a file, and the name of a server or of a function that makes one
  package.module[:object]  the same for an importable module
  http(s)://…              the endpoint of a server that runs (list and call)
  -- COMMAND [ARGUMENT …]  any server that speaks MCP on stdio (list and call)
"""


_commands = {"run": run_server, "list": list_offers, "call": call_tool}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        The exit status: 0 for success; 1 when a tool answered with an error; 2 for a wrong command line; 3 when the
        server cannot be loaded, reached or understood.
    """
    options = _parser().parse_args(_split(list(sys.argv[1:] if argv is None else argv)))
    try:
        return _commands[options.command](options)
    except LoadError as error:
        print(f"mcpcore: {error}", file=sys.stderr)
        return 3


def _split(argv: list[str]) -> list[str]:
    """Hand a command after ``--`` to argparse as one value: what follows is the server's, options and all.

    In ``mcpcore call -- COMMAND … -- TOOL name=value`` a second ``--`` ends the command.
    """
    if "--" not in argv:
        return argv
    start = argv.index("--")
    rest = argv[start + 1 :]
    end = len(rest) - 1 - rest[::-1].index("--") if "--" in rest else len(rest)
    command, after = rest[:end], rest[end + 1 :]
    return [*argv[:start], "\0".join(["", *command]), *after]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcpcore",
        description="Run and call Model Context Protocol servers.",
        epilog=_TARGET,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, text: str, epilog: str = "") -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=_TARGET + epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    run = add("run", "Serve a server object on stdio.")
    run.add_argument("target", metavar="TARGET")

    listing = add("list", "List what a server offers.")
    calling = add("call", "Call a tool and print its result.", _CALL)
    for client in (listing, calling):
        client.add_argument("target", metavar="TARGET")
        client.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for each request; 60")
        client.add_argument("--protocol-version", metavar="REVISION", help="speak only this revision")
        client.add_argument("--json", action="store_true", help="print the protocol's JSON instead of text")
    calling.add_argument("tool", metavar="TOOL")
    calling.add_argument("arguments", metavar="NAME=VALUE", nargs="*")
    calling.add_argument("--arguments", dest="object", metavar="JSON", help="all arguments as one JSON object")
    return parser


_CALL = """
A VALUE is taken as text where the tool's schema wants text, and as JSON elsewhere.
With a command, a second -- ends it:  mcpcore call -- npx some-server -- TOOL NAME=VALUE
"""
