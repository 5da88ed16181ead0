/** @tier heavy @quarter 4 @covers drivers/release_image jobs/deployments/deployment */
// Releases as images in both registries: programs of others read them, copy them and run them.
import { readdirSync, readFileSync, rmSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { anotherPython, packPython, pinnedUvWheel, startPythonIndex } from '../../support/builds/python_index';
import { busyboxLayer, pushImage, SERVE, sha256, siteLayer } from '../../support/builds/images';
import { configuredApplication, type TestApplication } from '../../support/deployments/deploy';
import { nodeLocked, staticSite } from '../../support/git/repositories';
import { openDistribution, type Distribution } from '../../support/registries/distribution';
import {
  pullLayout,
  skopeo,
  startPublishing,
  withContainer,
  type Publishing,
} from '../../support/registries/release_images';
import { fileNeeds, needs } from '../../support/runner/programs';
import { waitFor } from '../../support/wait_for';
import { withConfig } from '../../support/config';

fileNeeds('skopeo', 'buildah');

const PATIENCE_MS = 240_000;
const python = anotherPython();
const uv = pinnedUvWheel();
const testPython = python && uv ? test : test.skip;

/** Modules of a Python that was compiled here link to libraries of the host. */
function modulesOf({ version, prefix }: { version: string; prefix: string }): string[] {
  const directory = path.join(prefix, 'lib', `python${version.replace(/\.\d+$/, '')}`, 'lib-dynload');
  return [path.join(prefix, 'bin/python3'), ...readdirSync(directory).map((name) => path.join(directory, name))];
}

describe.each(['embedded', 'distribution'])('release images in the registry engine %s', (engine) => {
  let publishing: Publishing;
  let distribution: Distribution | null = null;
  let close: () => Promise<void> = () => Promise.resolve();

  beforeAll(async () => {
    distribution = engine === 'distribution' ? await openDistribution() : null;
    const settings: Record<string, string> = {};
    if (python && uv) {
      const packed = packPython(python);
      const folder = mkdtempSync(path.join(tmpdir(), 'builds-'));
      const index = await startPythonIndex();
      writeFileSync(path.join(folder, 'builds.json'), packed.list);
      index.files.set(uv.name, uv.body).set(packed.name, packed.archive);
      Object.assign(settings, {
        ...{ PREFERRED_PYTHON: 'newest', PYTHON_INDEX: `${index.url}/simple`, PYTHON_MIRROR: `${index.url}/files` },
        ...withConfig({ pythonBuilds: path.join(folder, 'builds.json') }),
      });
      close = async () => {
        await index.close();
        rmSync(folder, { recursive: true, force: true });
      };
    }
    publishing = await startPublishing({ distribution, settings, programs: python ? modulesOf(python) : [] });
  }, 120_000);

  afterAll(async () => {
    await publishing?.close();
    await distribution?.close();
    await close();
  }, 120_000);

  type Deploying = Pick<TestApplication, 'ask' | 'ended' | 'log' | 'visit'>;

  async function deployed(application: Deploying): Promise<{ image: string; login: string; commit_sha: string }> {
    const { id } = await application.ask();
    const ended = await application.ended(id, PATIENCE_MS);
    const log = ended.status === 'active' ? '' : (await application.log(id)).join('\n');
    expect([ended.status, log]).toEqual(['active', '']);
    const image = await publishing.imageOf(application, ended);
    return { image, login: await publishing.loginFor(image), commit_sha: ended.commit_sha };
  }

  /** Whether the image answers as the host does. */
  async function expectSameAnswer(application: Deploying): Promise<void> {
    const { image, login } = await deployed(application);
    await withContainer({ image: `${publishing.host}/${image}`, login }, async ({ get, exec }) => {
      expect(await get('/')).toBe((await application.visit()).body);
      expect((await exec('/bin/sh', '-c', 'id -u 2>/dev/null || echo 10001')).trim()).toBe('10001');
    });
  }

  test(
    'the image of a Node.js release answers as the host does, and skopeo finds what it is made of',
    async () => {
      const application = await publishing.service.application(nodeLocked('one'));
      const { image, login, commit_sha } = await deployed(application);
      const from = `docker://${publishing.host}/${image}`;
      const found = JSON.parse(await skopeo('inspect', '--tls-verify=false', '--creds', login, from));
      expect(found.Labels).toEqual({
        'org.opencontainers.image.revision': commit_sha,
        'org.opencontainers.image.source': expect.stringMatching(/^http:/),
      });
      const layout = await pullLayout(`${publishing.host}/${image}`, login);
      const index = JSON.parse(readFileSync(path.join(layout, 'index.json'), 'utf8'));
      rmSync(layout, { recursive: true, force: true });
      expect(`apps/${application.id}@${index.manifests[0].digest}`).toBe(image);
      await withContainer({ image: `${publishing.host}/${image}`, login }, async ({ get, exec }) => {
        expect(await get('/')).toBe('one');
        const env = JSON.parse(await get('/env')) as Record<string, string>;
        expect(env).toMatchObject({ HOME: '/app', NODE_ENV: 'production', SVC_PROCESS_TYPE: 'web', PWD: '/app' });
        expect(env.SVC_LISTEN_ADDRESS).toBe('0.0.0.0');
        expect((await exec('id', '-un')).trim()).toBe('app');
      });
      // A second version sends nothing that the registry has.
      application.push({ 'other.txt': 'other' });
      const next = await deployed(application);
      const layersOf = async (one: { image: string; login: string }): Promise<string[]> => {
        const name = `docker://${publishing.host}/${one.image}`;
        return JSON.parse(await skopeo('inspect', '--tls-verify=false', '--creds', one.login, name)).Layers;
      };
      const [before, after] = [await layersOf({ image, login }), await layersOf(next)];
      expect(after.filter((digest) => !before.includes(digest))).toHaveLength(1);
    },
    PATIENCE_MS,
  );

  test('the image of a static site answers as the host does', async () => {
    await expectSameAnswer(await publishing.service.application(staticSite('a page')));
  }, 240_000);

  testPython(
    'the image of a Python release answers as the host does',
    async () => {
      const series = python!.version.split('.').slice(0, 2).join('.');
      const program = [
        'import http.server, os, sys',
        'class Handler(http.server.BaseHTTPRequestHandler):',
        '    def do_GET(self):',
        '        self.send_response(200)',
        '        self.end_headers()',
        "        self.wfile.write((sys.version.split()[0] + ' ' + sys.prefix).encode())",
        "http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), Handler).serve_forever()",
      ];
      const files = {
        ...{ Procfile: 'web: python app.py\n', 'requirements.txt': '', 'app.py': program.join('\n') },
        '.python-version': `${series}\n`,
      };
      await expectSameAnswer(await publishing.service.application(files));
    },
    240_000,
  );

  needs('go').test(
    'the image of a Go release answers as the host does',
    async () => {
      const program = [
        'package main',
        'import ("fmt"; "net/http"; "os")',
        'func main() {',
        '  http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {',
        '    fmt.Fprint(w, "go ", os.Getenv("HOME"))',
        '  })',
        '  http.ListenAndServe("127.0.0.1:" + os.Getenv("PORT"), nil)',
        '}',
      ];
      const files = { 'go.mod': 'module example.com/hello\n\ngo 1.19\n', 'main.go': program.join('\n') };
      await expectSameAnswer(await publishing.service.application(files));
    },
    240_000,
  );

  test('images of applications and of Dockerfiles are kept with the digest that they have', async () => {
    const { service, host, client } = publishing;
    const layers = [await busyboxLayer(), await siteLayer({ 'index.html': 'of an image' })];
    const digest = await pushImage(client, 'bases/site', '1', { layers, config: { Cmd: SERVE } });
    const source = { type: 'image', image: `${host}/bases/site:1` };
    const made = await service.call('POST', '/v2/applications', { body: { name: 'of-an-image', source } });
    expect(made.status).toBe(201);
    const { image, login } = await deployed(await configuredApplication(service, made.body));
    expect(image).toBe(`apps/${String(made.body.id)}@${digest}`);
    const from = `docker://${host}/${image}`;
    const raw = await skopeo('inspect', '--raw', '--tls-verify=false', '--creds', login, from);
    expect(sha256(Buffer.from(raw))).toBe(digest);
    const dockerfile = [`FROM ${host}/bases/busybox:1`, 'COPY www /www', `CMD ${JSON.stringify(SERVE)}`].join('\n');
    const files = { Dockerfile: dockerfile, 'www/index.html': 'of a Dockerfile' };
    const built = await service.application(files, { build: { builder: 'dockerfile' } });
    const released = await deployed(built);
    await withContainer({ image: `${host}/${released.image}`, login: released.login }, async ({ get }) => {
      expect(await get('/index.html')).toBe('of a Dockerfile');
    });
  }, 240_000);

  // The embedded one is away only where all of the platform is.
  const testOutage = engine === 'distribution' ? test : test.skip;

  testOutage(
    'a deployment waits for a registry that is away for a moment, and then goes on',
    async () => {
      const application = await publishing.service.application({ Procfile: 'web: busybox httpd -f -p "$PORT" -h .\n' });
      await distribution?.kill();
      const { id } = await application.ask();
      await waitFor(
        'the publishing',
        async () => (await application.log(id)).some((line) => line.includes('Publishing the release')),
        60_000,
      );
      await sleep(3_000);
      const { registryDir, registryPort } = publishing.service.platform.config;
      await distribution?.start({ port: registryPort, certificate: path.join(registryDir, 'token.crt') });
      const ended = await application.ended(id, PATIENCE_MS);
      expect([ended.status, ended.status_reason]).toEqual(['active', null]);
      await publishing.imageOf(application, ended);
    },
    240_000,
  );
});
