// Repositories that tests deploy, as files. All programs answer with their version, so that a test sees which one it
// met.
import type { GitFiles } from './git_server';

export const lock = (name: string): string =>
  JSON.stringify({
    name,
    version: '1.0.0',
    lockfileVersion: 3,
    requires: true,
    packages: { '': { name, version: '1.0.0' } },
  });

const SERVER = (version: string): string => `
const http = require('http');
const server = http.createServer((request, response) => {
  if (request.url === '/slow') return setTimeout(() => response.end('slow ${version}'), 400);
  if (request.url === '/env') return response.end(JSON.stringify(process.env));
  if (request.url === '/crash') return process.exit(3);
  if (request.url === '/health') return response.writeHead(require('fs').existsSync('/tmp/sick') ? 500 : 200).end();
  response.end('${version}');
});
server.listen(process.env.PORT, '127.0.0.1', () => console.log('version ${version} listens on ' + process.env.PORT));
process.on('SIGTERM', () => { server.close(() => process.exit(0)); server.closeIdleConnections(); });
`;

/** Without dependencies: npm would take half a second of each build. */
export function nodeApp(version: string): GitFiles {
  return webCommand('node server.js', { 'server.js': SERVER(version) });
}

/** Node.js with a lock file and a start script. */
export function nodeLocked(version: string): GitFiles {
  return {
    'package.json': JSON.stringify({ name: 'app', version: '1.0.0', scripts: { start: 'node server.js' } }),
    'package-lock.json': lock('app'),
    'server.js': SERVER(version),
  };
}

/** Node.js whose build script writes what runs; the build sees BUILD_WORD. */
export function nodeBuild(version: string): GitFiles {
  return {
    'package.json': JSON.stringify({
      name: 'built',
      version: '1.0.0',
      scripts: { build: 'node build.js', start: 'node dist/server.js' },
    }),
    'package-lock.json': lock('built'),
    'build.js':
      "require('fs').mkdirSync('dist'); require('fs').writeFileSync('dist/server.js', " +
      `${JSON.stringify(SERVER(version))}.replaceAll('${version}', '${version} ' + (process.env.BUILD_WORD || ` +
      "'none'))); console.log('built')",
  };
}

/** A page and nothing else. */
export function staticSite(version: string): GitFiles {
  return { 'index.html': `<p>${version}</p>` };
}

/** web, worker and release in a Procfile. `release` is a shell command. */
export function procfileApp(version: string, release = 'echo released > released.txt'): GitFiles {
  return {
    Procfile: `web: node server.js\nworker: node worker.js\nrelease: ${release}\n`,
    'server.js': SERVER(version).replace(
      `response.end('${version}');`,
      `response.end('${version} ' + (require('fs').existsSync('released.txt') ? 'released' : 'raw'));`,
    ),
    'worker.js': `console.log('worker ${version}'); setInterval(() => {}, 1000);`,
  };
}

/** Python without dependencies. */
export function pythonApp(version: string): GitFiles {
  return {
    Procfile: 'web: python3 app.py\n',
    'requirements.txt': '',
    'app.py': `
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'${version}')
HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
`,
  };
}

/** A Procfile with one command for web. */
export function webCommand(command: string, files: GitFiles = {}): GitFiles {
  return { Procfile: `web: ${command}\n`, ...files };
}

/** Writes into a volume at /data and shows what is in it. */
export function keeper(version: string): GitFiles {
  return webCommand('node server.js', {
    'server.js': `
const fs = require('fs');
require('http').createServer((request, response) => {
  if (request.method === 'POST') fs.appendFileSync('/data/notes', '${version} ');
  response.end(fs.existsSync('/data/notes') ? fs.readFileSync('/data/notes') : '');
}).listen(process.env.PORT, '127.0.0.1');
`,
  });
}

export const broken = {
  build: (): GitFiles => ({
    'package.json': JSON.stringify({
      name: 'x',
      version: '1.0.0',
      scripts: { build: 'echo about to fail; exit 7', start: 'node x.js' },
    }),
    'package-lock.json': lock('x'),
    'x.js': '',
  }),
  /** The build leaves a directory that nobody may read. */
  unreadable: (): GitFiles => ({
    'package.json': JSON.stringify({
      name: 'x',
      version: '1.0.0',
      scripts: { build: 'mkdir -p dist/private && chmod 000 dist/private', start: 'node x.js' },
    }),
    'package-lock.json': lock('x'),
    'x.js': '',
  }),
  exits: (): GitFiles => webCommand('sh -c "echo goodbye; exit 9"'),
  silent: (): GitFiles => webCommand('sleep 1000'),
  wrongPort: (port: number): GitFiles =>
    webCommand('node server.js', {
      'server.js': `require('http').createServer((q, a) => a.end()).listen(${port}, '127.0.0.1')`,
    }),
  release: (): GitFiles => procfileApp('x', 'sh -c "echo no database; exit 4"'),
};
