"""The command ``mcpcore`` as a person types it: what it prints where, and with which status it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mcpcore
from mcpcore.cli import main
from mcpcore.cli.arguments import read_arguments
from mcpcore.types import Tool

ROOT = Path(__file__).parents[2]
ORDERS = str(ROOT / "examples" / "order_service" / "server.py")
LIMIT = 30

SHOP = '''
"""A server for the tests of the command line."""

import sys
from typing import Any, Literal

from mcpcore import Context, Image, Server, ToolError

print("printed while importing")
server = Server("shop", version="2.0", instructions="Buy something.")
spare = Server("spare")
number = 5


@server.tool
async def show(text: str, count: int = 1, ratio: float | None = None, flag: bool = False, color: Literal["red", "4"] = "red",
               items: list[str] | None = None, other: str | None = None, extra: Any = None) -> dict[str, Any]:
    """Show what arrived.

    The second paragraph is long: it goes on and on, so that it has to be wrapped, because it would not fit on one line.
    """
    return {"text": text, "count": count, "ratio": ratio, "flag": flag, "color": color, "items": items, "other": other,
            "extra": extra}


@server.tool
async def plain(how: Literal["text", "json", "image", "none"]) -> Any:
    """Return content without structure."""
    print("printed by the tool")
    print("logged by the tool", file=sys.stderr)
    return {"text": "just text", "json": [{"a": 1.0}], "image": Image(b"\\x89PNG\\r\\n\\x1a\\n", format="png"), "none": None}[how]


@server.tool
async def fail() -> str:
    """Fail."""
    raise ToolError("it did not work\\nat all")


@server.tool
async def ask(ctx: Context) -> str:
    """Ask for what the command line cannot answer."""
    return str(await ctx.roots())


@server.prompt
async def greet(name: str, mood: str = "good") -> str:
    """Greet."""
    return name


@server.resource("shop://{item}")
async def item(item: str) -> str:
    """An item."""
    return item


def make() -> Server:
    made = Server("made")

    @made.tool
    def hello() -> str:
        return "hello from the factory"

    return made


async def make_async() -> Server:
    return make()


def make_nothing() -> int:
    return 5


def make_badly() -> Server:
    raise RuntimeError("no way")
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("targets")
    (found / "shop.py").write_text(SHOP)
    (found / "empty.py").write_text("server = 5\n")
    (found / "broken.py").write_text("from mcpcore import Server\nserver = Server('x')\nnot_defined()\n")
    (found / "syntax.py").write_text("def broken(:\n")
    (found / "other.py").write_text("from shop import spare as app\nmcp = 5\n")
    (found / "package").mkdir()
    (found / "package" / "__init__.py").write_text("")
    (found / "package" / "module.py").write_text("from shop import server\nfrom shop import make\n")
    return found


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(folder: Path) -> Run:
    """Run ``mcpcore`` with arguments, in the folder of targets."""

    def run(*arguments: str, columns: str = "80", **options: Any) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": columns}
        command = [sys.executable, "-m", "mcpcore", *arguments]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False, **options
        )

    return run


@pytest.fixture
def quick(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The same without a process for the command itself, only for its server."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        try:
            status = main(arguments)
        except SystemExit as exit:
            status = int(str(exit.code))
        printed = capsys.readouterr()
        return subprocess.CompletedProcess(arguments, status, printed.out, printed.err)

    return run


def check(done: subprocess.CompletedProcess[str], status: int, *, stderr: str | None = None) -> str:
    assert done.returncode == status, (done.stdout, done.stderr)
    if stderr is not None:
        assert done.stderr == stderr
    return done.stdout


# -- the order service -------------------------------------------------------------------------------------------


def test_an_order_is_printed_as_json_without_what_it_does_not_have(run: Run) -> None:
    order = json.loads(check(run("call", ORDERS, "get_order", "orderId=ORD-10002"), 0, stderr=""))
    assert order["orderId"] == "ORD-10002"
    assert order["status"] == "PENDING"
    assert "shipment" not in order


def test_an_order_that_does_not_exist_is_a_text_of_two_lines_and_status_1(quick: Run) -> None:
    text = "Error invoking method: get_order\nNo order with ID 'ORD-99999'. Check the ID and try again.\n"
    assert check(quick("call", ORDERS, "get_order", "orderId=ORD-99999"), 1, stderr=text) == ""


def test_orders_are_listed_without_a_schema_as_indented_json(quick: Run) -> None:
    stdout = check(quick("call", ORDERS, "get_customer_orders", "customerId=CUST-42"), 0, stderr="")
    assert [order["orderId"] for order in json.loads(stdout)] == ["ORD-10164", "ORD-10114", "ORD-10064", "ORD-10014"]
    assert stdout.startswith("[\n  {\n")


# -- targets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "tool", "says"),
    [
        ("shop.py:make", "hello", "hello from the factory"),
        ("shop.py:make_async", "hello", "hello from the factory"),
        ("shop:make", "hello", "hello from the factory"),
        ("package.module:make", "hello", "hello from the factory"),
        ("./shop.py", "plain", "just text"),
        ("shop.py:server", "plain", "just text"),
        ("shop", "plain", "just text"),
        ("package.module", "plain", "just text"),
    ],
)
def test_every_form_of_target_is_found(quick: Run, target: str, tool: str, says: str) -> None:
    pairs = ["how=text"] if tool == "plain" else []
    assert check(quick("call", target, tool, *pairs), 0, stderr="") == says + "\n"


def test_a_command_is_started(run: Run) -> None:
    command = [sys.executable, "-m", "mcpcore", "run", "shop.py:make"]
    assert "hello()" in check(run("list", "--", *command), 0, stderr="")
    assert (
        check(run("call", "--timeout", "20", "--", *command, "--", "hello"), 0, stderr="") == "hello from the factory\n"
    )


def test_another_name_is_taken_where_the_first_is_no_server(quick: Run) -> None:
    assert check(quick("list", "other.py"), 0).startswith("spare 0.0.0, protocol")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("missing.py", ["missing.py", "no such file"]),
        ("missing_module", ["missing_module", "no such module"]),
        ("package.missing", ["package.missing", "no such module"]),
        ("./shop.txt", ["./shop.txt", "neither a .py file nor a module name"]),
        ("shop.txt", ["shop.txt: there is no such module"]),
        ("shop.py:nothing", ["there is no 'nothing'", "server, spare"]),
        ("shop.py:number", ["int is no mcpcore.Server"]),
        ("shop.py:make_nothing", ["int is no mcpcore.Server"]),
        ("shop.py:make_badly", ["cannot be loaded", "RuntimeError: no way", "in make_badly"]),
        ("empty.py", ["mcp, server, app", "server is a int", "empty.py:NAME"]),
        ("broken.py", ["broken.py cannot be loaded", 'broken.py", line 3', "NameError"]),
        ("syntax.py", ["syntax.py cannot be loaded", "SyntaxError"]),
        ("http://127.0.0.1:1/mcp", ["http"]),  # nobody there, or nothing to connect with
    ],
)
def test_a_target_that_cannot_be_loaded_is_explained_once_with_status_3(
    quick: Run, target: str, words: list[str]
) -> None:
    done = quick("list", target)
    assert check(done, 3) == ""
    assert done.stderr.startswith("mcpcore: ")
    assert all(word in done.stderr for word in words), done.stderr
    assert done.stderr.count("Traceback") <= 1
    assert "importlib" not in done.stderr and "mcpcore/cli" not in done.stderr


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["no-such-command"], ["cannot start 'no-such-command'", "no such command"]),
        ([sys.executable, "-c", "raise SystemExit(7)"], ["ended with status 7"]),
        ([sys.executable, "-c", "raise RuntimeError('boom')"], ["ended with status 1", "RuntimeError: boom"]),
    ],
)
def test_a_command_that_does_not_serve_is_explained_with_status_3(
    quick: Run, command: list[str], words: list[str]
) -> None:
    done = quick("list", "--", *command)
    assert check(done, 3) == ""
    assert all(word in done.stderr for word in words), done.stderr


def test_a_command_that_is_silent_ends_in_time_and_its_log_is_pointed_at(run: Run) -> None:
    code = "import sys; print('waiting for you', file=sys.stderr, flush=True); sys.stdin.read()"
    done = run("list", "--timeout", "1", "--", sys.executable, "-c", code)
    check(done, 3)
    assert "did not answer" in done.stderr and "--log" in done.stderr
    assert "waiting for you" in run("list", "--log", "--timeout", "1", "--", sys.executable, "-c", code).stderr


# -- arguments ---------------------------------------------------------------------------------------------------


NULLABLE: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
TOOL = Tool(
    "show",
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": ["number", "null"]},
            "flag": {"type": "boolean"},
            "color": {"enum": ["red", "4"]},
            "constant": {"const": "7"},
            "level": {"enum": [1, 2]},
            "items": {"type": "array"},
            "maybe": {"type": ["string", "null"]},
            "other": NULLABLE,
            "either": {"oneOf": [{"type": "integer"}, NULLABLE]},
            "extra": {},
            "always": True,
        },
    },
)


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=12", "12"),
        ("text=null", "null"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ('text={"a": 1}', '{"a": 1}'),
        ("text=true", "true"),
        ("count=3", 3),
        ("count=many", "many"),
        ("ratio=0.5", 0.5),
        ("ratio=null", None),
        ("flag=true", True),
        ("color=4", "4"),
        ("constant=7", "7"),
        ("level=2", 2),
        ('items=["a", 1]', ["a", 1]),
        ("items=a", "a"),
        ("maybe=5", "5"),
        ("maybe=null", None),
        ("other=5", "5"),
        ("other=null", None),
        ("either=5", "5"),
        ("extra=5", 5),
        ("extra=word", "word"),
        ('extra={"a": [null]}', {"a": [None]}),
        ("always=1", 1),
        ("unknown=1", 1),
    ],
)
def test_a_value_is_text_or_json_as_the_schema_has_it(pair: str, value: Any) -> None:
    found = read_arguments(TOOL, [pair], None)[pair.partition("=")[0]]
    assert found == value
    assert type(found) is type(value)


def test_pairs_are_stronger_than_the_whole_and_may_stand_anywhere(quick: Run) -> None:
    shown = check(
        quick("call", "shop.py", "show", "--arguments", '{"text": "x", "count": 2}', "count=9", "flag=true"), 0
    )
    assert json.loads(shown).items() >= {"text": "x", "count": 9, "flag": True}.items()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], ["unknown tool 'nope'; there are: show, plain, fail, ask"]),
        (["show", "text"], ["'text': write arguments as NAME=VALUE"]),
        (["show", "--arguments", "[1]"], ["--arguments: not a JSON object"]),
        (["show", "--arguments", "{"], ["--arguments: not a JSON object"]),
    ],
)
def test_a_wrong_call_is_explained_with_status_2(quick: Run, arguments: list[str], words: list[str]) -> None:
    done = quick("call", "shop.py", *arguments)
    assert check(done, 2) == ""
    assert all(word in done.stderr for word in words), done.stderr


@pytest.mark.parametrize("pairs", [[], ["text=x", "count=many"], ["text=x", "color=blue"], ["text=x", "unknown=1"]])
def test_arguments_that_do_not_fit_are_refused_by_the_server_with_status_1(quick: Run, pairs: list[str]) -> None:
    done = quick("call", "shop.py", "show", *pairs)
    assert check(done, 1) == ""
    assert "input validation failed" in done.stderr


# -- results -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "printed"),
    [
        ("text", "just text\n"),
        ("json", '[\n  {\n    "a": 1.0\n  }\n]\n'),
        ("image", "[image/png, 8 bytes]\n"),
        ("none", ""),
    ],
)
def test_content_is_printed_as_people_read_it(quick: Run, how: str, printed: str) -> None:
    assert check(quick("call", "shop.py", "plain", f"how={how}"), 0) == printed


def test_what_the_server_logs_is_shown_only_when_asked_for(run: Run) -> None:
    check(run("call", "shop.py", "plain", "how=text"), 0, stderr="")
    done = run("call", "--log", "shop.py", "plain", "how=text")
    assert check(done, 0) == "just text\n"
    # What is printed and what is logged come by two streams, whose order nobody promises.
    assert sorted(done.stderr.splitlines()) == ["logged by the tool", "printed by the tool", "printed while importing"]


def test_a_tool_that_fails_ends_with_status_1_and_its_text_on_standard_error(quick: Run) -> None:
    done = quick("call", "shop.py", "fail")
    assert check(done, 1, stderr="Error invoking method: fail\nit did not work\nat all\n") == ""


def test_an_error_of_the_protocol_ends_with_status_1(quick: Run) -> None:
    done = quick("call", "shop.py", "ask")
    assert check(done, 1) == ""
    assert "roots" in done.stderr and "Traceback" not in done.stderr


def test_json_is_the_protocol_s_own(quick: Run) -> None:
    result = json.loads(check(quick("call", "--json", "shop.py", "plain", "how=text"), 0))
    assert result == {"content": [{"type": "text", "text": "just text"}], "isError": False}
    failed = json.loads(check(quick("call", "--json", "shop.py", "fail"), 1))
    assert failed["isError"] is True
    offers = json.loads(check(quick("list", "--json", "shop.py"), 0))
    assert [tool["name"] for tool in offers["tools"]] == ["show", "plain", "fail", "ask"]
    assert offers["tools"][0]["inputSchema"]["required"] == ["text"]
    assert offers["prompts"][0]["name"] == "greet"
    assert offers["resourceTemplates"][0]["uriTemplate"] == "shop://{item}"


# -- lists -------------------------------------------------------------------------------------------------------


def test_a_list_shows_how_to_call_and_wraps_what_is_long(quick: Run) -> None:
    printed = check(quick("list", "shop.py"), 0, stderr="")
    assert printed.startswith(
        "shop 2.0, protocol 2026-07-28\n  Buy something.\n\nTools\n  show(text: string, count: integer = 1, "
    )
    assert 'color: "red"|"4" = "red", items?: string[], other?: string, extra?: any)' in printed
    assert "      Show what arrived.\n" in printed
    assert '\n  plain(how: "text"|"json"|"image"|"none")\n' in printed
    assert "\n\nResource templates\n  shop://{item}\n      An item.\n" in printed
    assert printed.endswith("\n\nPrompts\n  greet(name, mood?)\n      Greet.\n")
    assert all(len(line) <= 80 for line in printed.splitlines() if line.startswith("      "))


def test_a_list_can_be_made_in_an_older_revision(quick: Run) -> None:
    assert check(quick("list", "--protocol-version", "2024-11-05", "shop.py"), 0).startswith(
        "shop 2.0, protocol 2024-11-05\n"
    )


def test_a_server_that_offers_nothing_says_so(quick: Run) -> None:
    assert check(quick("list", "shop.py:spare"), 0) == "spare 0.0.0, protocol 2026-07-28\n\nIt offers nothing.\n"


def test_a_reader_that_has_enough_may_close_the_pipe(folder: Path) -> None:
    command = [sys.executable, "-m", "mcpcore", "list", "shop.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.wait(LIMIT) == 0
        assert process.stderr.read() == b""


# -- run ---------------------------------------------------------------------------------------------------------


def test_run_serves_and_keeps_what_the_import_prints_off_the_channel(run: Run) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n"
    done = run("run", "shop.py", input=message)
    assert json.loads(check(done, 0)) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert done.stderr == "printed while importing\n"


@pytest.mark.parametrize("command", ["run", "lint"])
@pytest.mark.parametrize("arguments", [["--", "python"], ["http://127.0.0.1:1/mcp"]])
def test_run_and_lint_take_server_objects_only(quick: Run, command: str, arguments: list[str]) -> None:
    done = quick(command, *arguments)
    assert check(done, 2) == ""
    assert "server object" in done.stderr


# -- lint --------------------------------------------------------------------------------------------------------


def test_lint_prints_one_finding_a_line_and_ends_with_status_0(run: Run) -> None:
    found = check(run("lint", "shop.py"), 0, stderr="printed while importing\n").splitlines()
    assert (
        "tool 'fail': it has no hints and counts as destructive: set read_only=True or destructive=False if it is not [no-hints]"
        in found
    )
    assert all(line.endswith("]") for line in found)
    rules = [(each["name"], each["rule"]) for each in json.loads(check(run("lint", "shop.py", "--json"), 0))]
    assert ("greet", "parameter-without-description") in rules
    assert len(rules) == len(found)


def test_lint_says_nothing_where_there_is_nothing_to_say(run: Run) -> None:
    assert check(run("lint", "shop.py:spare"), 0) == ""


# -- the command itself ------------------------------------------------------------------------------------------


def test_without_arguments_it_tells_what_it_can_do(run: Run) -> None:
    done = run()
    assert check(done, 2) == ""
    assert all(word in done.stderr for word in ("run", "list", "call", "file.py:object", "-- COMMAND"))


def test_help_is_for_people(run: Run) -> None:
    assert "TARGET is one of" in check(run("--help"), 0, stderr="")
    helped = check(run("call", "--help"), 0, stderr="")
    assert all(word in helped for word in ("TARGET is one of", "--arguments", "Exit status", "mcpcore call -- npx"))


def test_version_is_the_package_s(run: Run) -> None:
    assert check(run("--version"), 0, stderr="") == f"mcpcore {mcpcore.__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["list"],
        ["call", "shop.py"],
        ["list", "--"],
        ["list", "shop.py", "--timeout", "0"],
        ["list", "shop.py", "--timeout", "soon"],
        ["list", "shop.py", "--protocol-version", "1.0"],
    ],
)
def test_a_wrong_command_line_is_status_2(quick: Run, arguments: list[str]) -> None:
    done = quick(*arguments)
    assert check(done, 2) == ""
    assert done.stderr and "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_a_call_without_a_traceback(folder: Path) -> None:
    code = "import sys; print('up', file=sys.stderr, flush=True); sys.stdin.read()"
    command = [sys.executable, "-m", "mcpcore", "list", "--log", "--", sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130
        assert process.stderr.read() == b""
