/** @tier heavy @quarter 4 @covers drivers/builder */
// Programs beside an index.html: what is deployed is the program, or nothing; its source is never published as a site.
import { spawnSync } from 'node:child_process';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import type { GitFiles } from '../support/git/git_server';
import { needs } from '../support/runner/programs';
import { lock } from '../support/git/repositories';

let service: DeployService;
beforeAll(async () => {
  service = await startDeployService({ BUILD_CONCURRENCY: '4' });
}, 60_000);
afterAll(() => service?.close(), 60_000);

/** The first build with Go compiles its library, below the priority of what other tests compute. */
const PATIENCE_MS = 600_000;
const hasGo = spawnSync('go', ['version']).status === 0;
const index = { 'index.html': '<p>embedded</p>' };
const node =
  "const page = require('fs').readFileSync('index.html');\n" +
  "require('http').createServer((q, s) => s.end('program ' + page)).listen(process.env.PORT, '127.0.0.1');\n";
const python = `
import os
from http.server import BaseHTTPRequestHandler, HTTPServer
SECRET = 'hidden'
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'program ' + open('index.html', 'rb').read())
HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
`;
/** Without net/http: the library is compiled for each application. */
const go = String.raw`package main

import (
	_ "embed"
	"fmt"
	"net"
	"os"
)

//go:embed index.html
var page string

func main() {
	listener, _ := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	for {
		connection, _ := listener.Accept()
		connection.Read(make([]byte, 4096))
		text := "program " + page
		fmt.Fprintf(connection, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
		connection.Close()
	}
}
`;

interface Ended {
  id: string;
  status: string;
  status_reason: string | null;
}

async function deploy(files: GitFiles, settings?: object): Promise<{ application: TestApplication; ended: Ended }> {
  const application = await service.application(files, settings);
  return { application, ended: await application.ended((await application.ask()).id, PATIENCE_MS) };
}

const pythons: [string, GitFiles][] = [
  ['Python', { ...index, 'app.py': python }],
  ['Python with packages named', { ...index, 'main.py': python, 'requirements.txt': '# none\n' }],
  ['Python beside a package.json for tools', { ...index, 'package.json': '{"scripts":{"css":"x"}}', 'app.py': python }],
  [
    'Python beside a build script',
    { ...index, 'package.json': '{"scripts":{"build":"node -v"}}', 'package-lock.json': lock('x'), 'app.py': python },
  ],
];
const nodes: [string, GitFiles][] = [
  ['Node.js without a package.json', { ...index, 'server.js': node }],
  ['Node.js in an app.js without a start script', { ...index, 'package.json': '{}', 'app.js': node }],
];

async function answersAsProgram(_name: string, files: GitFiles): Promise<void> {
  const { application, ended } = await deploy(files);
  expect(ended).toMatchObject({ status: 'active' });
  for (const place of ['/', '/app.py', '/server.js'])
    expect(await application.visit(place)).toEqual({ status: 200, body: 'program <p>embedded</p>' });
}

needs('python3').test.each(pythons)('%s with an index.html: the program answers', answersAsProgram, 660_000);
test.each(nodes)('%s with an index.html: the program answers', answersAsProgram, 660_000);

(hasGo ? test : test.skip)(
  'Go with an embedded index.html: the program answers (needs go)',
  async () => {
    const { application, ended } = await deploy({ ...index, 'main.go': go, 'go.mod': 'module shop\n\ngo 1.18\n' });
    expect(ended).toMatchObject({ status: 'active', status_reason: null });
    expect(await application.visit('/main.go')).toEqual({ status: 200, body: 'program <p>embedded</p>' });
  },
  660_000,
);

const refused: [string, GitFiles, RegExp][] = [
  ['PHP', { ...index, 'config.php': '<?php $secret = 1;' }, /config\.php \(PHP\).*Dockerfile/],
  ['PHP with Composer', { 'public/index.html': '', 'composer.json': '{}' }, /composer\.json \(PHP\).*Dockerfile/],
  ['Ruby', { ...index, Gemfile: '' }, /Gemfile \(Ruby\).*Dockerfile/],
  ['Rust', { ...index, 'Cargo.toml': '', 'src/main.rs': '' }, /Cargo\.toml \(Rust\).*Dockerfile/],
  ['Java', { ...index, 'pom.xml': '' }, /pom\.xml \(Java\).*Dockerfile/],
  [
    'a server of Node.js in a folder, without a build',
    { ...index, 'server/index.js': node },
    /server\/index\.js \(Node\.js\).*package\.json/,
  ],
  ['sources of a bundler', { ...index, 'vite.config.js': '', 'src/main.js': '' }, /vite\.config\.js.*package\.json/],
  [
    'a build that writes elsewhere',
    {
      ...{ ...index, 'src/server.js': node, 'package-lock.json': lock('x') },
      'package.json': '{"scripts":{"build":"mkdir docs && cp index.html docs"}}',
    },
    /The build left no index\.html in dist\/.*root directory holds the sources/,
  ],
  ['Python without a known start', { ...index, 'tool.py': '' }, /tool\.py \(Python\).*Procfile/],
];

test('what nobody knows how to start is refused with the way, before anything is published', async () => {
  const application = await service.application({ 'README.md': '' });
  for (const [, files, reason] of refused) {
    application.push(files);
    const ended = await application.ended((await application.ask()).id, PATIENCE_MS);
    expect(ended).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(reason) });
    for (const place of ['/', '/config.php', '/src/server.js', '/server/index.js'])
      expect((await application.visit(place)).status).toBe(503);
    application.push(Object.fromEntries(Object.keys(files).map((name) => [name, null])));
  }
}, 660_000);

test('a preview and a folder of a monorepo are looked at in the same way', async () => {
  const { application, ended } = await deploy(
    { 'index.html': 'top', 'web/index.html': '', 'web/pom.xml': '' },
    { build: { root_directory: 'web' } },
  );
  expect(ended.status_reason).toMatch(/pom\.xml \(Java\)/);
  const site = await service.application({ 'index.html': 'v1' });
  expect(await site.ended((await site.ask()).id, PATIENCE_MS)).toMatchObject({ status: 'active' });
  service.git.commit(site.name, { 'config.php': '<?php' }, { branch: 'shop' });
  const preview = await site.post('/previews', { branch: 'shop' });
  const deployments = (await site.get(`/deployments?preview_id=${preview.id}`)).data;
  const last = await site.ended(deployments[0].id, PATIENCE_MS);
  expect(last).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(/config\.php \(PHP\)/) });
  expect((await application.visit()).status).toBe(503);
  expect(await site.visit()).toEqual({ status: 200, body: 'v1' });
}, 660_000);

test('a site whose folders have programs is published, and the log says that they do not run', async () => {
  const { application, ended } = await deploy({ ...index, 'forms/contact.php': '<?php' });
  expect(ended).toMatchObject({ status: 'active' });
  expect((await application.log(ended.id)).join('\n')).toMatch(/forms\/contact\.php.*does not run/);
}, 660_000);
