"""The endpoints mounted in the application of a web framework: ``frameworks.py FRAMEWORK PORT [LIBRARIES]``.

Nothing is wired to the lifespan of the host, unless FRAMEWORK ends in ``+lifespan``. What happens to the server's own lifespan
is printed. LIBRARIES is a folder that has the framework where this interpreter does not.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import uvicorn

from mcpcore import Context, Server

sys.path += sys.argv[3:]


@asynccontextmanager
async def life(server: Server) -> AsyncIterator[str]:
    """Say when it is entered and left."""
    print("in", flush=True)
    yield "value"
    print("out", flush=True)


server = Server("mounted", lifespan=life)


@server.tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@server.tool
async def count(ctx: Context) -> str:
    """Report, then answer."""
    await ctx.progress(1)
    return "counted"


http = server.http_app(health=True)
sse = server.sse_app()


def starlette(lifespan: Any) -> Any:
    """Mounts."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.routing import Mount, Route

    def own(request: Request) -> PlainTextResponse:
        return PlainTextResponse("own")

    return Starlette(routes=[Route("/own", own), Mount("/shop", http), Mount("/old", sse)], lifespan=lifespan)


def fastapi(lifespan: Any) -> Any:
    """Mounts."""
    from fastapi import FastAPI

    app = FastAPI(lifespan=lifespan)
    app.get("/own")(lambda: "own")
    app.mount("/shop", http)
    app.mount("/old", sse)
    return app


def litestar(lifespan: Any) -> Any:
    """Mounts."""
    litestar = import_module("litestar")

    def own() -> str:
        return "own"

    mounts = [litestar.asgi(path, is_mount=True)(app) for path, app in (("/shop", http), ("/old", sse))]
    routes = [litestar.get("/own", sync_to_thread=False)(own), *mounts]
    return litestar.Litestar(routes, lifespan=[] if lifespan is None else [lifespan], openapi_config=None)


def django(lifespan: Any) -> Any:
    """Has no mounts and no lifespan: what is in front of it decides by the path."""
    conf, asgi, answers, urls = (import_module(f"django.{name}") for name in ("conf", "core.asgi", "http", "urls"))

    def own(request: object) -> Any:
        return answers.HttpResponse("own")

    conf.settings.configure(ROOT_URLCONF=(urls.path("own", own),), ALLOWED_HOSTS=["*"], SECRET_KEY="test")
    host = asgi.get_asgi_application()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        for prefix, endpoint in (("/shop", http), ("/old", sse)):
            if scope["type"] == "http" and scope["path"].startswith(prefix):
                await endpoint({**scope, "root_path": scope["root_path"] + prefix}, receive, send)
                return
        if scope["type"] == "lifespan" and lifespan is not None:
            await http(scope, receive, send)  # Django has none, so it may as well be the endpoint's
        else:
            await host(scope, receive, send)

    return application


if __name__ == "__main__":
    name, _, wired = sys.argv[1].partition("+")
    app = globals()[name](http.lifespan if wired else None)
    uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", timeout_graceful_shutdown=1)
