"""The command line: ``mcpcore run``, ``mcpcore list``, ``mcpcore call``, ``mcpcore lint``, ``mcpcore bench``."""

import argparse
import os
import sys
from collections.abc import Sequence

from mcpcore.cli.commands import CANNOT_LOAD, call_tool, lint_server, list_offers, run_server
from mcpcore.cli.loading import LoadError, UsageError
from mcpcore.versions import VERSIONS

__all__ = ["main"]

_TARGET = """\
TARGET is one of
  file.py                  a file; the server is looked for as mcp, server, or app
  file.py:object           a file, and the name of a server or of a function that makes one
  package.module[:object]  the same for an importable module
  http(s)://…              the endpoint of a server that runs (not for run and lint)
  -- COMMAND [ARGUMENT …]  any server that speaks MCP on stdio (not for run and lint)
"""

_CALL = """
A VALUE is taken as text where the tool's schema takes text, and as JSON elsewhere.
With a command, a second -- ends it.

  mcpcore call server.py add a=1 b=2
  mcpcore call server.py search query="two words" 'tags=["a", "b"]'
  mcpcore call server.py search --arguments '{"query": "two words"}'
  mcpcore call -- npx -y some-server -- TOOL NAME=VALUE

Exit status: 0 success; 1 the tool answered with an error; 2 wrong command line; 3 the server cannot be loaded, reached or
understood.
"""

_LINT = """
A finding is advice: a description that is missing or says nothing, values that a type could list, hints that were not given.

Exit status: 0 whatever is found; 2 wrong command line; 3 the server cannot be loaded.
"""

_BENCH = """
Without a TOOL, the tools are listed. Calls are repeated with as many in flight as --concurrency says: the next one is sent
when one has been answered (closed loop), or, with --rate, when it is due (open loop); the latency of a call counts from
then, so that a server that stalls gets no better for it. The tool is called once before, and during the warm-up.

  mcpcore bench server.py add a=1 b=2
  mcpcore bench server.py add a=1 b=2 --concurrency 64 --duration 30 --html report.html
  mcpcore bench https://example.com/mcp add a=1 b=2 --rate 200 --header "Authorization: Bearer …"
  mcpcore bench -- npx -y some-server -- TOOL NAME=VALUE --count 1000 --expect "the text"
  mcpcore bench --self

Exit status: 0 success; 1 a reply was wrong, an error, or missing; 2 wrong command line; 3 the server cannot be loaded,
reached or understood.
"""


def _bench(options: argparse.Namespace) -> int:
    from mcpcore.cli.bench import bench_server  # only those who measure pay for it

    return bench_server(options)


_commands = {"run": run_server, "list": list_offers, "call": call_tool, "lint": lint_server, "bench": _bench}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        The exit status: 0 for success; 1 when a tool answered with an error; 2 for a wrong command line; 3 when the
        server cannot be loaded, reached or understood.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    if not arguments:
        parser.print_help(sys.stderr)
        return 2
    options = _options(parser, _split(arguments))
    try:
        status = _commands[options.command](options)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # `mcpcore list … | head`; Python would complain once more when it flushes at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UsageError as error:
        print(f"mcpcore: {error}", file=sys.stderr)
        return 2
    except LoadError as error:
        print(f"mcpcore: {error}", file=sys.stderr)
        return CANNOT_LOAD


def _options(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    options, rest = parser.parse_known_args(argv)
    if options.command in ("call", "bench") and not any(argument.startswith("-") for argument in rest):
        options.arguments += rest  # argparse does not see those that stand behind an option
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _split(argv: list[str]) -> list[str]:
    """Hand a command after ``--`` to argparse as one value: what follows is the server's, options and all.

    In ``mcpcore call -- COMMAND … -- TOOL name=value`` the last ``--`` ends the command.
    """
    if argv[:1] == ["bench"]:
        argv = _with_file(argv)
    if "--" not in argv:
        return argv
    start = argv.index("--")
    command, after = argv[start + 1 :], list[str]()
    if "--" in command and argv[0] in ("call", "bench"):
        end = len(command) - 1 - command[::-1].index("--")
        command, after = command[:end], command[end + 1 :]
    return [*argv[:start], "\0" + "\0".join(command), *after]


def _with_file(argv: list[str]) -> list[str]:
    """Say what ``--json`` means, to which a file can be added: where none is, the report is printed."""
    found: list[str] = []
    for argument in argv:
        if found and found[-1] == "--json":
            has_file = argument == "-" or argument.endswith(".json")
            found[-1:] = [f"--json={argument}"] if has_file else ["--json=-", argument]
        else:
            found.append(argument)
    return [*found[:-1], "--json=-"] if found[-1] == "--json" else found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcpcore",
        description="Run, call, check and measure Model Context Protocol servers.",
        epilog=_TARGET + "\nmcpcore COMMAND --help tells more.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str, epilog: str = "", *, needs_target: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=_TARGET + epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument(
            "target", metavar="TARGET", nargs=None if needs_target else "?", help="the server; see below"
        )
        return command

    running = add("run", "Serve a server object: on stdio, or over HTTP.")
    running.add_argument("--transport", choices=("stdio", "http", "sse"), default="stdio", help="stdio")
    running.add_argument("--host", default="127.0.0.1", help="address to bind over HTTP; 127.0.0.1")
    running.add_argument("--port", type=int, default=8000, help="port to bind over HTTP; 8000")
    running.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes that serve; 1. More need a server without sessions",
    )
    listing = add("list", "List what a server offers.")
    calling = add("call", "Call a tool and print its result.", _CALL)
    linting = add("lint", "Tell what could be said better about the handlers of a server object.", _LINT)
    linting.add_argument("--json", action="store_true", help="print the findings as JSON instead of text")
    benching = add(
        "bench", "Measure a tool: calls per second, latencies, errors, CPU and memory.", _BENCH, needs_target=False
    )
    for client in (listing, calling, benching):
        client.add_argument("--timeout", type=_seconds, default=60.0, metavar="SECONDS", help="for each request; 60")
        client.add_argument("--protocol-version", choices=VERSIONS, metavar="REVISION", help="speak only this revision")
        if client is not benching:
            client.add_argument("--json", action="store_true", help="print the protocol's JSON instead of text")
        client.add_argument("--log", action="store_true", help="show what the server writes to its standard error")
    calling.add_argument("tool", metavar="TOOL", help="the tool's name")
    calling.add_argument("arguments", metavar="NAME=VALUE", nargs="*", help="its arguments")
    benching.add_argument("arguments", metavar="TOOL NAME=VALUE", nargs="*", help="what is called")
    for caller in (calling, benching):
        caller.add_argument("--arguments", dest="object", metavar="JSON", help="all arguments as one JSON object")
    _add_plan(benching)
    return parser


def _add_plan(command: argparse.ArgumentParser) -> None:
    number = command.add_argument
    number("--concurrency", type=int, default=10, metavar="N", help="calls in flight; connections over HTTP; 10")
    number("--duration", type=float, metavar="SECONDS", help="how long; 5 unless --count is given")
    number("--count", type=int, metavar="N", help="how many calls")
    number("--rate", type=float, metavar="N", help="calls per second, whatever comes back (open loop)")
    number("--warm-up", type=float, default=1.0, metavar="SECONDS", help="the same before the clock runs; 1")
    number(
        "--ceiling",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="for measuring the driver itself; 1; 0 for not at all",
    )
    command.add_argument(
        "--expect", metavar="TEXT", help="what every reply has to say: its text, or its structured content"
    )
    command.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="for every HTTP request"
    )
    command.add_argument(
        "--sessions",
        choices=("connection", "shared"),
        default="connection",
        help="legacy HTTP sessions: one for each connection, or one for all of them; connection",
    )
    command.add_argument("--json", metavar="[FILE]", help="the report as JSON, instead of text, or into FILE (….json)")
    command.add_argument("--html", metavar="FILE", help="the report as a page with plots")
    command.add_argument("--self", dest="itself", action="store_true", help="measure the driver, without a TARGET")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *args: object) -> None:
        from mcpcore import __version__

        print(f"mcpcore {__version__}")
        parser.exit()


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: give seconds, more than 0")
    return seconds
