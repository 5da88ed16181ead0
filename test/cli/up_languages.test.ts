/** @tier heavy @quarter 4 @covers clients/cli/src/source clients/cli/src/commands drivers/builder */
// `svc up` in a folder of each kind that the builder knows: from the command to an address that answers, with the log
// on the way; again without a change, nothing is sent.
import * as fs from 'node:fs';
import path from 'node:path';
import { buildCli, openHome, type Home } from '../support/cli/svc';
import { startDeployService, visitHost, type DeployService } from '../support/deployments/deploy';
import { nodeLocked, procfileApp, pythonApp, staticSite } from '../support/git/repositories';
import type { GitFiles } from '../support/git/git_server';
import { needs } from '../support/runner/programs';

const UP_MS = 300_000;

let service: DeployService;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startDeployService();
  home = openHome(service);
}, 120_000);
afterAll(async () => {
  home?.remove();
  await service?.close();
}, 120_000);

function write(folder: string, files: GitFiles): void {
  for (const [name, given] of Object.entries(files)) {
    const file = path.join(folder, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    const isPlain = typeof given === 'string' || given === null || Buffer.isBuffer(given);
    const { mode, content } = isPlain ? { mode: '100644', content: given ?? '' } : given;
    fs.writeFileSync(file, content, { mode: mode === '100755' ? 0o755 : 0o644 });
  }
}

async function visit(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return (await visitHost(Number(port), hostname)).body;
}

/** Deploys, visits, deploys again. `log`: a line that the builder of the kind writes. */
async function deployTwice(name: string, files: GitFiles, log: RegExp, body: string): Promise<void> {
  const cwd = path.join(home.directory, name);
  write(cwd, files);
  const first = await home.svc(['up', '--create'], { cwd, withinMs: UP_MS });
  expect([first.code, first.stderr]).toEqual([0, expect.stringMatching(/Sending \d+ files[^]*Deployment 1 is active/)]);
  expect(first.stderr).toMatch(log);
  expect(await visit(first.stdout.trim())).toBe(body);
  const second = await home.svc(['up'], { cwd, withinMs: UP_MS });
  expect([second.code, second.stdout]).toEqual([0, first.stdout]);
  expect(second.stderr).toMatch(/Nothing has changed in \d+ files: the server has them\.[^]*Deployment 2 is active/);
  expect(await visit(second.stdout.trim())).toBe(body);
}

const GO: GitFiles = {
  'go.mod': 'module example.com/hello\n\ngo 1.21\n',
  'main.go': `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("/", func(response http.ResponseWriter, _ *http.Request) { fmt.Fprint(response, "from Go") })
	if err := http.ListenAndServe(":"+os.Getenv("PORT"), nil); err != nil {
		panic(err)
	}
}
`,
};

const DOCKERFILE = `FROM scratch
COPY busybox /bin/busybox
COPY page.html /www/index.html
ENV PATH=/bin
CMD ["/bin/busybox", "sh", "-c", "exec /bin/busybox httpd -f -p $PORT -h /www"]
`;

test('static', () => deployTwice('pages', staticSite('s1'), /Static/, '<p>s1</p>'), UP_MS);
test('Node.js', () => deployTwice('node', nodeLocked('n1'), /Node/, 'n1'), UP_MS);
test('a Procfile', () => deployTwice('procfile', procfileApp('c1'), /Procfile/, 'c1 released'), UP_MS);
needs('python3').test('Python', () => deployTwice('python', pythonApp('p1'), /Python|Procfile/, 'p1'), UP_MS);
needs('go').test('Go', () => deployTwice('go', GO, /Go/, 'from Go'), UP_MS);

const { test: buildTest } = needs('buildah', 'busybox', 'bwrap');
buildTest(
  'a Dockerfile, whose files are sent whatever .dockerignore says of it',
  async () => {
    const files: GitFiles = {
      Dockerfile: DOCKERFILE,
      '.dockerignore': 'Dockerfile\nnotes\n',
      notes: 'left out',
      'page.html': 'from a Dockerfile',
      busybox: { mode: '100755', content: fs.readFileSync('/bin/busybox') },
    };
    await deployTwice('image', files, /Dockerfile|STEP/, 'from a Dockerfile');
  },
  UP_MS,
);
