"""Where an application is mounted, as the frameworks tell it."""

from typing import Any

import pytest

from mcpcore.transports.http.requests import below_mount


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"path": "/mcp"}, ("", "/mcp")),
        ({"path": "/mcp/", "raw_path": b"/mcp/"}, ("", "/mcp")),
        ({"path": "/", "raw_path": b"/"}, ("", "")),
        # ASGI: `path` is the whole path, also where `root_path` is set.
        ({"path": "/shop/mcp", "root_path": "/shop", "raw_path": b"/shop/mcp"}, ("/shop", "/mcp")),
        ({"path": "/shop/", "root_path": "/shop"}, ("/shop", "")),
        ({"path": "/my shop/mcp", "root_path": "/my shop", "raw_path": b"/my%20shop/mcp"}, ("/my shop", "/mcp")),
        # Some servers and frameworks take it off `path`.
        ({"path": "/mcp", "root_path": "/shop"}, ("/shop", "/mcp")),
        # Litestar leaves `root_path` alone as well, and adds a slash.
        ({"path": "/mcp/", "root_path": "", "raw_path": b"/shop/mcp"}, ("/shop", "/mcp")),
        ({"path": "/mcp/", "root_path": "", "raw_path": b"/s/mcp/"}, ("/s", "/mcp")),
        ({"path": "/", "root_path": "", "raw_path": b"/shop"}, ("/shop", "")),
        ({"path": "/mcp/", "root_path": "/api", "raw_path": b"/api/shop/mcp"}, ("/api/shop", "/mcp")),
        ({"path": "/größe/", "root_path": "", "raw_path": b"/my%20shop/gr%C3%B6%C3%9Fe"}, ("/my shop", "/größe")),
        # A path that the client has spelt at length is no mount.
        ({"path": "/mcp", "raw_path": b"/%6d%63%70"}, ("", "/mcp")),
        # What has been rewritten on the way says nothing.
        ({"path": "/mcp", "raw_path": b"/something/else"}, ("", "/mcp")),
    ],
)
def test_the_mount_is_found_by_what_the_framework_leaves(scope: dict[str, Any], expected: tuple[str, str]) -> None:
    assert below_mount(scope) == expected
