"""The public names of the package."""

import ast
import subprocess
import sys
from pathlib import Path

import mcpcore.providers


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    source = ast.parse(Path(mcpcore.providers.__file__).read_text("utf-8"))
    imported = {
        alias.asname: node.module
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None
    }
    assert sorted(imported) == sorted(mcpcore.providers.__all__)
    for name, module in imported.items():
        assert getattr(mcpcore.providers, name) is getattr(sys.modules[str(module)], name)


def test_a_registry_loads_neither_an_event_loop_nor_what_it_may_never_need() -> None:
    code = (
        "import sys\n"
        "from mcpcore.providers import Registry\n"
        "registry = Registry()\n"
        "@registry.tool\n"
        "def add(a: int, b: int = 1) -> int: return a + b\n"
        "registry.list('tool', '2025-11-25')\n"
        "print(*sorted({'anyio', 'asyncio', 'pydantic', 'jsonschema_rs', 'mcpcore.protocol'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert ran.stdout.split() == []
