"""Servers for tests of what measures them: programs in which a body can be put that misbehaves.

The body runs for each request. ``right`` is the reply to a call, ``opened`` to what opens a connection, and ``number`` the id.
"""

__all__ = ["HTTP", "MCP", "OPENING", "STDIO"]

STDIO = """
import json, sys
def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def text(value):
    return {"content": [{"type": "text", "text": value}]}
for line in sys.stdin:
    request = json.loads(line)
    number = request["id"]
    right = {"id": number, "result": text(str(number + 7))}
    BODY
"""
"""``BODY`` is to be replaced. Replies are written with ``write(message)``."""

HTTP = """
import json, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def text(value):
    return {"content": [{"type": "text", "text": value}]}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number, headers = request.get("id"), self.headers
        right = {"id": number, "result": text(str((number or 0) + 7))}
        opened = {"id": number, "result": {"protocolVersion": "2025-11-25", "supportedVersions": ["2026-07-28"]}}
        self.BODY_GOES_HERE

    def write(self, *messages, status=200, kind="application/json", **more):
        lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in messages]
        if kind == "text/event-stream":
            lines = [f"data: {line}\\n\\n" for line in lines]
        self.send(status, "".join(lines), kind, **more)

    def send(self, status, body, kind="", **more):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **({"Content-Type": kind} if kind else {}), **more}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body.encode())

class Server(ThreadingHTTPServer):
    daemon_threads = True

Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
"""``self.BODY_GOES_HERE`` is to be replaced. Replies are written with ``self.write(message, …)`` or ``self.send(…)``."""

MCP = """
import json, sys, time
ERA, BEGIN, CALLS = ERA_GOES_HERE, BEGIN_GOES_HERE, 0
TOOL = {"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}}
def write(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def text(value, **more):
    return {"content": [{"type": "text", "text": value}], "resultType": "complete", **more}
def other(message):
    method, number = message.get("method"), message.get("id")
    if method == "initialize" and ERA == "legacy":
        opened = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
        write({"id": number, "result": opened})
    elif method == "server/discover" and ERA == "modern":
        found = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
        write({"id": number, "result": {**found, "ttlMs": 0, "cacheScope": "private"}})
    elif method == "tools/list":
        page = {"tools": [TOOL], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        write({"id": number, "result": page})
    elif method is not None and number is not None:
        write({"id": number, "error": {"code": -32601, "message": "Method not found"}})
for line in sys.stdin:
    request = json.loads(line)
    number = request.get("id")
    right = {"id": number, "result": text("right")}
    if request.get("method") != "tools/call":
        other(request)
        continue
    CALLS += 1
    if CALLS < BEGIN:
        write(right)
        continue
    BODY
"""
"""A whole server on pipes. ``BODY`` answers calls, from the one on that ``BEGIN_GOES_HERE`` says; ``ERA_GOES_HERE`` is one."""

OPENING = """
method, tool = request.get("method"), {"name": "add", "inputSchema": SCHEMA_GOES_HERE}
fresh = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
if method == "server/discover" and ERA_GOES_HERE == "modern":
    self.write({"id": number, "result": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **fresh}})
elif method == "server/discover":
    self.write({"id": number, "error": {"code": -32601, "message": "Method not found"}}, status=400)
elif method == "initialize":
    opened = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    state["sessions"] += 1
    self.write({"id": number, "result": opened}, Mcp_Session_Id="s%d" % state["sessions"])
elif method is None:
    state.setdefault("answers", {})[number] = request
    self.send(202, "")
elif number is None:
    self.send(202, "")
elif method == "tools/list":
    self.write({"id": number, "result": {"tools": [tool], **fresh}})
else:
    right = {"id": number, "result": {"content": [{"type": "text", "text": "right"}], "resultType": "complete"}}
    state["calls"] += 1
    BODY
"""
"""For the body of `HTTP`: a whole server. ``BODY`` answers calls; ``state`` counts them, and sessions."""
