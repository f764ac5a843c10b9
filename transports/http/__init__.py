"""Streamable HTTP: a bare ASGI application for servers, a client on httpx."""
