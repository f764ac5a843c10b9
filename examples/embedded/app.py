"""The order service inside a FastAPI application: ``uvicorn examples.embedded.app:app``, or any other ASGI server.

The MCP endpoint is mounted like any ASGI application. Nothing has to be wired to the application's lifespan; where there is
one, as here, closing the endpoint in it leaves the lifespan of the MCP server, too.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

sys.path.insert(0, str(Path(__file__).parent.parent / "order_service"))

from server import server

endpoint = server.http_app(path="/mcp")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Close the endpoint when the application stops."""
    yield
    await endpoint.aclose()


app = FastAPI(lifespan=lifespan)


@app.get("/health")
async def health() -> dict[str, str]:
    """An ordinary route of the application."""
    return {"status": "ok"}


app.mount("/shop", endpoint)  # the endpoint is at /shop/mcp
