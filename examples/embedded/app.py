"""The order service inside a FastAPI application: ``uvicorn examples.embedded.app:app``, or any other ASGI server.

The MCP endpoint is mounted like any ASGI application. Nothing has to be wired to the application's lifespan: it would start with
the first request. Where there is a lifespan, as here, it starts and ends the MCP server, too.
"""

import sys
from pathlib import Path

from fastapi import FastAPI

sys.path.insert(0, str(Path(__file__).parent.parent / "order_service"))

from server import server

endpoint = server.http_app(path="/mcp")

app = FastAPI(lifespan=endpoint.lifespan)


@app.get("/health")
async def health() -> dict[str, str]:
    """An ordinary route of the application."""
    return {"status": "ok"}


app.mount("/shop", endpoint)  # the endpoint is at /shop/mcp
