"""Our client against servers that are not there, die, keep silent or misbehave: each wait ends, with an error that says why."""

import gc
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpcore import Client, Limits, PeerError, RequestTimeout, ServerExited, TransportError, stdio
from mcpcore.exceptions import MCPCoreError, RemoteProtocolError

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
LIMIT = 20


def proof(*arguments: str, **options: Any) -> Any:
    """The test server."""
    return stdio(sys.executable, "-W", "error", str(HERE / "server.py"), *arguments, **options)


def odd(code: str, **options: Any) -> Any:
    """A server that runs ``code`` for each message."""
    return stdio(sys.executable, str(HERE / "odd_server.py"), code, **options)


def program(code: str, **options: Any) -> Any:
    return stdio(sys.executable, "-c", code, **options)


@asynccontextmanager
async def connected(target: Any, **options: Any) -> AsyncGenerator[Client]:
    """A client whose whole life is bounded; afterwards nothing is left that warns when it is collected."""
    with anyio.fail_after(LIMIT):
        async with Client(target, **options) as client:
            yield client
    gc.collect()


async def failure(target: Any, kind: type[Exception], **options: Any) -> Any:
    """The error with which a connection cannot be opened."""
    with pytest.raises(kind) as caught:
        async with connected(target, **options):
            pass
    gc.collect()
    return caught.value


# -- servers that do not come up ---------------------------------------------------------------------------------


async def test_a_command_that_is_missing_is_named() -> None:
    error = await failure(stdio("no-such-command-anywhere", "argument"), TransportError)
    assert "no-such-command-anywhere" in str(error)
    assert "no such command" in str(error)


async def test_a_server_that_crashes_at_once_tells_status_and_traceback() -> None:
    error = await failure(program("raise RuntimeError('boom')", stderr=lambda line: None), ServerExited)
    assert error.returncode == 1
    assert "RuntimeError: boom" in error.stderr_tail
    assert "RuntimeError: boom" in str(error)
    assert "status 1" in str(error) and sys.executable in str(error)


async def test_a_program_that_ends_at_once_in_peace_is_no_server_either() -> None:
    error = await failure(program("pass"), ServerExited)
    assert error.returncode == 0


async def test_a_program_that_closes_its_output_is_no_server_either() -> None:
    code = "import os, sys; os.close(1); sys.stdin.read()"
    await failure(program(code), MCPCoreError)


async def test_a_server_that_never_says_anything_times_out() -> None:
    await failure(odd("pass"), RequestTimeout, timeout=0.5, limits=Limits(probe=0.1))


async def test_a_program_that_prints_what_is_no_protocol_times_out() -> None:
    await failure(odd("write(b'Welcome!\\n> ')"), RequestTimeout, timeout=0.5, limits=Limits(probe=0.1))


# -- servers of the legacy era -----------------------------------------------------------------------------------


async def test_a_server_that_does_not_know_discover_is_greeted_by_initialize() -> None:
    async with connected(odd("legacy()")) as client:
        assert client.protocol_version == "2025-11-25"


async def test_a_server_that_is_silent_about_what_it_does_not_know_is_greeted_after_the_probe_time() -> None:
    code = "open_session() if method == 'initialize' else None"
    async with connected(odd(code), limits=Limits(probe=0.1)) as client:
        assert client.protocol_version == "2025-11-25"


async def test_a_server_that_dies_of_discover_is_started_again_and_greeted_by_initialize() -> None:
    code = "sys.exit(3) if method == 'server/discover' else legacy()"
    async with connected(odd(code)) as client:
        assert client.protocol_version == "2025-11-25"


async def test_a_server_that_dies_of_initialize_too_is_not_started_for_ever() -> None:
    error = await failure(odd("sys.exit(3)"), ServerExited)
    assert error.returncode == 3


@pytest.mark.parametrize("code", [-32602, 0])
async def test_any_error_to_discover_means_a_legacy_server(code: int) -> None:
    async with connected(odd(f"open_session() if method == 'initialize' else fail({code})")) as client:
        assert client.protocol_version == "2025-11-25"


async def test_the_revision_that_the_server_answers_is_spoken() -> None:
    code = "answer({}) if method == 'ping' else legacy('2024-11-05')"
    async with connected(odd(code)) as client:
        assert client.protocol_version == "2024-11-05"
        await client.ping()


@pytest.mark.parametrize("version", ["'1999-01-01'", "None"])
async def test_a_revision_that_is_not_known_ends_the_connection(version: str) -> None:
    error = await failure(odd(f"legacy({version})"), MCPCoreError)
    assert isinstance(error, RemoteProtocolError)


async def test_a_server_that_refuses_the_handshake_says_why() -> None:
    error = await failure(odd("fail(-32603)"), PeerError)
    assert error.code == -32603
    assert "failed with -32603" in str(error)


# -- servers that go away ----------------------------------------------------------------------------------------


async def test_every_call_that_is_open_fails_when_the_server_dies() -> None:
    code = "legacy() if method != 'tools/call' else os._exit(7) if message['params']['name'] == 'die' else None"
    errors: list[MCPCoreError] = []

    async def call(client: Client, name: str) -> None:
        with pytest.raises(ServerExited) as caught:
            await client.call_tool(name)
        errors.append(caught.value)

    async with connected(odd(code)) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(call, client, "wait")
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(call, client, "die")
        assert [getattr(error, "returncode", None) for error in errors] == [7] * 6
        with pytest.raises(ServerExited):
            await client.call_tool("late")


async def test_a_server_that_is_killed_is_told_by_its_signal() -> None:
    code = "legacy() if method != 'tools/call' else os.kill(os.getpid(), 9)"
    async with connected(odd(code)) as client:
        with pytest.raises(ServerExited) as caught:
            await client.call_tool("x")
        assert caught.value.returncode == -9


async def test_an_error_of_the_application_comes_out_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with connected(proof()):
            raise ZeroDivisionError


async def test_output_that_nobody_reads_does_not_disturb_closing() -> None:
    note = (
        "send({'jsonrpc': '2.0', 'method': 'notifications/message', 'params': {'level': 'info', 'data': 'x' * 1000}})"
    )
    code = f"legacy()\nif method == 'notifications/initialized':\n    for _ in range(2000): {note}"
    async with connected(odd(code)):
        pass


# -- calls that are given up -------------------------------------------------------------------------------------


async def none_running(client: Client) -> None:
    """Wait until the server has ended all calls of its tool ``sleep``."""
    while (await client.call_tool("count_running")).text != "0":
        await anyio.lowlevel.checkpoint()


async def test_calls_that_time_out_end_at_the_server_too() -> None:
    async def call(client: Client) -> None:
        with pytest.raises(RequestTimeout):
            await client.call_tool("sleep", {"seconds": 600}, timeout=0.2)

    async with connected(proof()) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(call, client)
        await none_running(client)


async def test_calls_whose_task_is_cancelled_end_at_the_server_too() -> None:
    async with connected(proof()) as client:
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(client.call_tool, "sleep", {"seconds": 600})
            while (await client.call_tool("count_running")).text != "50":
                pass
            tasks.cancel_scope.cancel()
        await none_running(client)
        assert (await client.call_tool("echo", {"text": "x"})).text == "x"


async def test_an_answer_that_comes_too_late_is_ignored() -> None:
    code = """
if method == "tools/call":
    state.setdefault("open", []).append(message["id"])
elif method == "ping":
    for id in state.pop("open", []):
        send({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
    answer({})
else:
    legacy()
"""
    async with connected(odd(code)) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("x", timeout=0.1)
        await client.ping()
        await client.ping()


async def test_an_answer_with_an_id_of_another_type_answers_nothing() -> None:
    code = "legacy() if method != 'tools/call' else send({'jsonrpc': '2.0', 'id': str(message['id']), 'result': {'content': []}})"
    async with connected(odd(code)) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("x", timeout=0.2)


# -- servers that are careless -----------------------------------------------------------------------------------


async def test_lines_that_are_no_messages_are_skipped() -> None:
    code = "write(b'DEBUG starting\\n\\n   \\n{\\xff}\\n[]\\n42\\n'); legacy() if method != 'ping' else answer({})"
    async with connected(odd(code)) as client:
        await client.ping()
        await client.ping()


async def test_lines_that_end_like_those_of_windows_are_read() -> None:
    code = "write(b'\\r\\n'); legacy() if method != 'ping' else write(b'{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{}}\\r\\n' % message['id'])"
    async with connected(odd(code)) as client:
        await client.ping()


async def test_a_server_may_write_a_lot_to_its_standard_error() -> None:
    code = "sys.stderr.write('x' * 1_000_000 + '\\n'); sys.stderr.flush(); legacy() if method != 'ping' else answer({})"
    seen: list[str] = []
    async with connected(odd(code, stderr=seen.append)) as client:
        await client.ping()
    assert sum(map(len, seen)) >= 3_000_000


async def test_null_stands_for_what_is_absent() -> None:
    code = """
if method == "tools/list":
    answer({"nextCursor": None, "_meta": None, "tools": [
        {"name": "a", "title": None, "description": None, "annotations": None, "outputSchema": None, "_meta": None,
         "inputSchema": {"type": "object", "properties": None, "required": None}},
        {"name": "b", "inputSchema": {"type": "object"}}]})
elif method == "tools/call":
    answer({"content": [{"type": "text", "text": "x", "annotations": None}], "isError": None, "structuredContent": None,
            "_meta": None})
elif method == "prompts/list":
    answer({"prompts": [{"name": "p", "description": None, "arguments": None}], "nextCursor": None})
elif method == "resources/list":
    answer({"resources": [{"uri": "a:b", "name": "r", "mimeType": None, "size": None}]})
else:
    legacy()
"""
    async with connected(odd(code)) as client:
        assert [tool.name for tool in await client.list_tools()] == ["a", "b"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["p"]
        assert [resource.name for resource in await client.list_resources()] == ["r"]
        result = await client.call_tool("a")
        assert (result.text, result.is_error) == ("x", False)


async def test_one_item_that_cannot_be_understood_does_not_spoil_the_list() -> None:
    code = """
if method == "tools/list":
    answer({"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": 5}, "x",
                      {"name": "b", "inputSchema": {"type": "object"}}]})
else:
    legacy()
"""
    async with connected(odd(code)) as client:
        assert [tool.name for tool in await client.list_tools()] == ["a", "b"]


async def test_a_call_with_structured_content_and_no_content_is_understood() -> None:
    code = "legacy() if method != 'tools/call' else answer({'content': None, 'structuredContent': {'a': 1}})"
    async with connected(odd(code)) as client:
        assert (await client.call_tool("x")).structured == {"a": 1}


# -- what a server inherits --------------------------------------------------------------------------------------


ENVIRONMENT = """
if method == "tools/call":
    answer({"content": [{"type": "text", "text": json.dumps(dict(os.environ))}]})
else:
    legacy()
"""


async def environment(**options: Any) -> dict[str, str]:
    async with connected(odd(ENVIRONMENT, **options)) as client:
        import json

        found: dict[str, str] = json.loads((await client.call_tool("x")).text)
        return found


@pytest.mark.parametrize("env", [None, {}, {"ADDED": "1"}])
async def test_a_server_gets_what_programs_need_and_no_secrets(monkeypatch: pytest.MonkeyPatch, env: Any) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hidden")
    monkeypatch.setenv("LC_PROOF", "() { echo; }")
    found = await environment(env=env)
    assert found.keys() >= {"PATH", "HOME"}
    assert found.keys().isdisjoint({"SECRET_TOKEN", "LC_PROOF"})
    assert found.get("ADDED") == (env or {}).get("ADDED")


async def test_the_whole_environment_is_passed_on_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "shared")
    found = await environment(inherit_env=True, env={"ADDED": "1"})
    assert (found["SECRET_TOKEN"], found["ADDED"]) == ("shared", "1")


async def test_a_command_is_found_by_its_bare_name_and_starts_where_it_is_told(tmp_path: Path) -> None:
    with anyio.fail_after(LIMIT), pytest.raises(ServerExited) as caught:
        async with Client(stdio("sh", "-c", "pwd >&2; exit 4", cwd=tmp_path, env={}, stderr=lambda line: None)):
            pass
    assert caught.value.returncode == 4
    assert caught.value.stderr_tail == str(tmp_path)
