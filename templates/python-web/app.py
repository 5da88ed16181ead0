"""A web server in Python, without packages."""
import html
import json
import os
import platform
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTED = time.monotonic()
PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <title>Python is running</title>
  <style>
    :root { color-scheme: light dark; --ink: #16202e; --soft: #566376; --paper: #f8fafc; --line: #dde5ee;
      --accent: #2563a8; --glow: #fdeeb0; }
    @media (prefers-color-scheme: dark) { :root { --ink: #e6edf5; --soft: #94a3b6; --paper: #0e141c; --line: #263242;
      --accent: #8fc1f5; --glow: #4a3f12; } }
    body { margin: 0; min-height: 100vh; display: grid; place-items: center;
      background: radial-gradient(60rem 30rem at 50% -8rem, var(--glow), transparent) var(--paper); color: var(--ink);
      font: 1rem/1.6 ui-sans-serif, system-ui, sans-serif; }
    main { width: min(40rem, 100% - 3rem); padding: 4rem 0; }
    h1 { margin: 0 0 .5rem; font-size: clamp(2.2rem, 6vw, 3.4rem); line-height: 1.1; letter-spacing: -.02em; }
    p { margin: 0 0 2rem; color: var(--soft); font-size: 1.15rem; }
    dl { display: grid; grid-template-columns: repeat(2, 1fr); gap: 1rem; margin: 0; border-top: 1px solid var(--line);
      padding-top: 1.5rem; }
    dt { color: var(--soft); font-size: .85rem; } dd { margin: 0; font-size: 1.5rem; color: var(--accent); }
    code { font: .9em ui-monospace, monospace; }
  </style>
</head>
<body>
  <main>
    <h1>GREETING</h1>
    <p>The code is in <code>app.py</code>; <code>/api/state</code> answers as JSON. Set the variable
      <code>GREETING</code> and restart to change the headline.</p>
    <dl>
      <div><dt>Version</dt><dd>VERSION</dd></div>
      <div><dt>Up for</dt><dd>UPTIME s</dd></div>
    </dl>
  </main>
</body>
</html>
"""


def state():
    return {
        "python": platform.python_version(),
        "uptime_seconds": int(time.monotonic() - STARTED),
        "process_id": os.getpid(),
    }


def page():
    now = state()
    greeting = os.environ.get("GREETING", "Python is running.")
    values = {"VERSION": now["python"], "UPTIME": str(now["uptime_seconds"]), "GREETING": html.escape(greeting)}
    text = PAGE
    for name in ("VERSION", "UPTIME"):
        text = text.replace(f"<dd>{name}", f"<dd>{values[name]}")
    return text.replace("<h1>GREETING", f"<h1>{values['GREETING']}")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 65

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/":
            self.answer(200, "text/html", page())
        elif path == "/api/state":
            self.answer(200, "application/json", json.dumps(state()))
        elif path == "/healthz":
            self.answer(200, "text/plain", "ok\n")
        else:
            self.answer(404, "text/plain", "Not found\n")

    do_HEAD = do_GET

    def answer(self, status, kind, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def main():
    host = os.environ.get("HOST") or os.environ.get("SVC_LISTEN_ADDRESS") or "127.0.0.1"
    server = ThreadingHTTPServer((host, int(os.environ.get("PORT", "8080"))), Handler)
    # shutdown() waits for the loop that this handler interrupts, so it needs a thread of its own.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    print(f"Listening on port {server.server_port}", flush=True)
    server.serve_forever()
    print("Stopping", flush=True)


if __name__ == "__main__":
    sys.exit(main())
