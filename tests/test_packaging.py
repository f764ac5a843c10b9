"""The package list, the public names and the README agree with the tree."""

import ast
import importlib
import re
import tomllib
from pathlib import Path

import mcpcore

ROOT = Path(__file__).resolve().parent.parent


def test_the_package_list_matches_the_tree() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "mcpcore").rglob("__init__.py")
        if not any(parent.is_symlink() for parent in path.parents)
    }
    for name, folder in tool["package-dir"].items():
        for init in (ROOT / folder).rglob("__init__.py"):
            found.add(".".join((name, *init.parent.relative_to(ROOT / folder).parts)))
    assert sorted(tool["packages"]) == sorted(found)


def test_every_public_name_can_be_imported() -> None:
    for name in mcpcore.__all__:
        assert getattr(mcpcore, name) is not None


def test_public_names_for_type_checkers_and_at_run_time_are_the_same() -> None:
    tree = ast.parse(Path(mcpcore.__file__).read_text(encoding="utf-8"))
    static = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mcpcore.")
        for alias in node.names
        if alias.asname is not None
    }
    assert static == set(mcpcore.__all__)


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == mcpcore.__version__


def test_every_module_lists_names_that_it_has() -> None:
    for path in sorted((ROOT / "mcpcore").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            assert hasattr(module, public), f"{name} has no {public}"


def test_the_readme_has_exactly_two_commands_of_one_line() -> None:
    blocks = re.findall(
        r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert [block.count("\n") for block in blocks] == [1, 1]
