/** @tier heavy @quarter 3 @covers drivers/toolchain drivers/builder/python/python_packages.ts */
// Python by uv from the request to the response: the version that the source asks for, from a mirror, its packages from
// an index, and what happens where neither is in reach.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { anotherPython, packPython, pinnedUvWheel, shelfWheel } from '../support/builds/python_index';
import { startPythonIndex, type PythonIndex } from '../support/builds/python_index';
import { needs } from '../support/runner/programs';
import { withConfig } from '../support/config';

const PATIENCE_MS = 150_000;
const release = pinnedUvWheel();
const python = anotherPython();
const missing = [release === null && 'uv of a Python package index', python === null && 'a second Python of pyenv']
  .filter(Boolean)
  .join(', ');
const describeHere = missing === '' ? describe : describe.skip;

const program = (name: string): string => `
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(('${name} ' + sys.version.split()[0] + ' ' + sys.prefix).encode())
def serve():
    http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()
`;
const files = { Procfile: 'web: shelf-serve\n', 'requirements.txt': 'shelf\n' };

describeHere(`Python by uv${missing && ` (needs ${missing})`}`, () => {
  let index: PythonIndex;
  let folder: string;
  let service: DeployService;
  let series: string;
  beforeAll(async () => {
    const packed = packPython(python!);
    series = packed.version.split('.').slice(0, 2).join('.');
    folder = mkdtempSync(path.join(os.tmpdir(), 'builds-'));
    writeFileSync(path.join(folder, 'builds.json'), packed.list);
    index = await startPythonIndex();
    const shelf = shelfWheel('1', program('public'));
    for (const { name, body } of [release!, shelf]) index.files.set(name, body);
    index.files.set(packed.name, packed.archive);
    service = await startDeployService({
      ...{ BUILD_CONCURRENCY: '4', PREFERRED_PYTHON: 'newest', PYTHON_INDEX: `${index.url}/simple` },
      ...{ PYTHON_MIRROR: `${index.url}/files`, ...withConfig({ pythonBuilds: path.join(folder, 'builds.json') }) },
    });
  }, 120_000);
  afterAll(async () => {
    await service?.close();
    await index?.close();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  async function deployed(application: TestApplication): Promise<{ status_reason: string | null; log: string }> {
    const { id } = await application.ask();
    const ended = await application.ended(id, PATIENCE_MS);
    const log = (await application.log(id)).join('\n');
    expect([ended.status, ended.status === 'active' ? '' : log]).toEqual(['active', '']);
    return { status_reason: ended.status_reason, log };
  }

  test(
    '.python-version chooses it, and uv installs from the index of the operator, or of the application',
    async () => {
      const application = await service.application({ ...files, '.python-version': `${series}\n` });
      const { status_reason, log } = await deployed(application);
      expect(status_reason).toBeNull();
      expect(log).toContain(`Python ${python!.version} is what .python-version asks for (${series}).`);
      expect(log).toMatch(/-----> uv pip install\n[^]*shelf==1/);
      const [name, version, prefix] = (await application.visit()).body.split(' ');
      expect([name, version]).toEqual(['public', python!.version]);
      expect(prefix).toMatch(/\.platform\/venv$/);

      // An index of the application's own, with a password, as pip reads it.
      const shelf = shelfWheel('2', program('private'));
      index.files.set(shelf.name, shelf.body);
      const address = `${index.url.replace('//', '//me:s3cr3t-w0rd@')}/simple`;
      const variable = `/v2/applications/${application.id}/env/PIP_INDEX_URL`;
      const set = await service.call('PUT', variable, { body: { value: address, available_at: 'build' } });
      expect(set.body).toMatchObject({ key: 'PIP_INDEX_URL' });
      index.requests.length = 0;
      application.push({ ...files, '.python-version': `${series}\n`, 'requirements.txt': 'shelf>=2\n' });
      const next = await deployed(application);
      expect((await application.visit()).body).toMatch(/^private /);
      const authorization = `Basic ${Buffer.from('me:s3cr3t-w0rd').toString('base64')}`;
      expect(index.requests).toContainEqual({ path: '/simple/shelf/', authorization });
      expect(next.log).not.toContain('s3cr3t-w0rd');
    },
    2 * PATIENCE_MS,
  );

  test(
    'of uv.lock, pyproject.toml and Pipfile too',
    async () => {
      const { Procfile } = files;
      const project =
        '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.10"\ndependencies = ["shelf<2"]\n';
      const cases: [string, Record<string, string>][] = [
        ['uv install of uv.lock', { 'pyproject.toml': project, 'uv.lock': lockOf(index) }],
        ['uv pip install of pyproject.toml', { 'pyproject.toml': project }],
        ['uv pip install of Pipfile', { Pipfile: '[packages]\nshelf = "<2"\n' }],
      ];
      await Promise.all(
        cases.map(async ([summary, own]) => {
          const application = await service.application({ Procfile, ...own });
          const { log } = await deployed(application);
          expect(log).toContain(summary);
          expect((await application.visit()).body).toMatch(/^public 3\.\d/);
        }),
      );
    },
    2 * PATIENCE_MS,
  );

  needs('python3').test(
    'without a mirror in reach the Python of the host serves, and status_reason says so',
    async () => {
      index.files.delete([...index.files.keys()].find((name) => name.startsWith('cpython-'))!);
      rmSync(path.join(service.runtimeDir, 'toolchains', `python-${python!.version}`), { recursive: true });
      const application = await service.application(files);
      const { status_reason, log } = await deployed(application);
      const reason = /^Python 3\.\d+\.\d+ of the host is used, because a newer one could not be installed: /;
      expect(status_reason).toMatch(reason);
      expect(log).toContain('of the host is used');
      expect((await application.visit()).body).not.toContain(` ${python!.version} `);
      const asking = await service.application({ ...files, '.python-version': `${series}\n` });
      const refused = await asking.ended((await asking.ask()).id, PATIENCE_MS);
      expect([refused.status, refused.status_reason]).toEqual([
        'failed',
        expect.stringMatching(/^\.python-version asks for Python .* It could not be downloaded: .*PYTHON_MIRROR/),
      ]);
    },
    2 * PATIENCE_MS,
  );
});

/** As `uv lock` writes it. */
function lockOf({ url, files: served }: PythonIndex): string {
  const name = 'shelf-1-py3-none-any.whl';
  const hash = createHash('sha256').update(served.get(name)!).digest('hex');
  return `version = 1
requires-python = ">=3.10"

[[package]]
name = "app"
version = "1"
source = { virtual = "." }
dependencies = [
    { name = "shelf" },
]

[package.metadata]
requires-dist = [{ name = "shelf", specifier = "<2" }]

[[package]]
name = "shelf"
version = "1"
source = { registry = "${url}/simple" }
wheels = [
    { url = "${url}/files/${name}", hash = "sha256:${hash}" },
]
`;
}
