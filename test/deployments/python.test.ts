// Python from the request to the response: what serves it, what its packages are, and what its owner is told.
import { startDeployService, type DeployService } from '../support/deployments/deploy';
import { needs } from '../support/runner/programs';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

const PATIENCE_MS = 110_000;
const { test: onlyIf } = needs('python3');

/** A framework as its server for development looks like, beside the program: nothing is asked of an index. */
const flask = `
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
class Flask:
    def __init__(self, name): pass
    def run(self):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200); self.end_headers(); self.wfile.write(b'developed')
        HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
`;
/** Without a name that a server could import. */
const app = "from flask import Flask\nif __name__ == '__main__':\n    Flask(__name__).run()\n";
/** Packages of the host are what a program would see without an environment of its own. */
const host = `
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
try:
    import pip
    found = pip.__file__
except ImportError:
    found = None
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(json.dumps({'pip': found, 'own': sys.prefix != sys.base_prefix}).encode())
HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
`;

onlyIf(
  'a server for development says so in the log and in status_reason, and serves',
  async () => {
    const application = await service.application({ 'app.py': app, 'flask.py': flask });
    const ended = await application.ended((await application.ask()).id, PATIENCE_MS);
    expect(ended).toMatchObject({ status: 'active', status_reason: expect.stringMatching(/server for development/) });
    expect((await application.log(ended.id)).join('\n')).toMatch(/server for development.*Add gunicorn/);
    expect((await application.visit()).body).toBe('developed');
    application.push({ 'app.py': app.replaceAll('Flask', 'Other'), 'flask.py': flask.replace('Flask', 'Other') });
    const next = await application.ended((await application.ask()).id, PATIENCE_MS);
    expect(next).toMatchObject({ status: 'active', status_reason: null });
    const back = await application.post('/rollback', { deployment_id: ended.id });
    expect(await application.ended(back.id, PATIENCE_MS)).toMatchObject({
      status: 'active',
      status_reason: expect.stringMatching(/server for development/),
    });
  },
  240_000,
);

onlyIf(
  'a program without packages sees none of the host',
  async () => {
    const application = await service.application({ 'main.py': host });
    const ended = await application.ended((await application.ask()).id, PATIENCE_MS);
    expect(ended).toMatchObject({ status: 'active', status_reason: null });
    expect(JSON.parse((await application.visit()).body)).toEqual({ pip: null, own: true });
  },
  120_000,
);
