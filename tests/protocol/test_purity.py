"""The core does no I/O, has no clock, no chance and no coroutine."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import mcpcore.protocol

FOLDER = Path(mcpcore.protocol.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))
IMPURE = {
    *("anyio", "asyncio", "trio", "httpx", "starlette", "socket", "ssl", "select", "selectors", "subprocess"),
    *(
        "threading",
        "multiprocessing",
        "concurrent",
        "time",
        "datetime",
        "random",
        "secrets",
        "uuid",
        "os",
        "logging",
        "io",
    ),
}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_has_no_coroutine(path: Path) -> None:
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [ast.unparse(node)[:60] for node in ast.walk(tree) if isinstance(node, kinds)] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_imports_nothing_that_acts(path: Path) -> None:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module is not None
            imported.add(node.module.split(".")[0])
    assert imported & IMPURE == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_prints_opens_and_asks_nothing(path: Path) -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called & {"print", "open", "input", "exec", "eval", "breakpoint"} == set()


def test_a_server_needs_nothing_of_the_client_and_no_parser_but_msgspec() -> None:
    """What a stdio server pays for at its start."""
    program = (
        "import sys; from mcpcore.protocol import ServerConfig, ServerConnection; "
        "print(sorted({'mcpcore.protocol.client', 'json', 'asyncio', 'anyio', 'pydantic'} & set(sys.modules)))"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert output.stdout.strip() == "[]"
