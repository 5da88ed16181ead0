// A service that publishes releases as images, a base for them made of programs of this host, and programs of others
// that read and run what was published.
import { execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { pullLoginOf } from '../../../server/platform/registry_tokens';
import { busyboxLayer, tarOf, pushImage } from '../builds/images';
import { startDeployService, type DeployService } from '../deployments/deploy';
import { freePort } from '../processes/free_port';
import type { Distribution } from './distribution';
import { startRegistryClient, type RegistryClient } from './registry_client';
import { waitFor } from '../wait_for';

const run = promisify(execFile);
const PROGRAMS = [
  ...['sh', 'bash', 'cat', 'ls', 'tr', 'env', 'id', 'sed', 'uname', 'dirname', 'readlink', 'sha256sum', 'sleep'],
];
const LOADED = /(?:=> )?(\/\S+) \(0x/g;

/** A layer with a shell and the libraries that Node.js and Python need. */
export async function glibcLayer(more: readonly string[] = []): Promise<Buffer> {
  const found = PROGRAMS.map((name) => ['/usr/bin', '/bin'].map((place) => path.join(place, name)).find(existsSync));
  const programs = found.filter((file) => file !== undefined);
  const libraries = new Set([process.execPath, ...programs, ...more].flatMap(librariesOf));
  const entries = [...programs.map((file) => `usr/bin/${path.basename(file)}`), ...[...libraries].map(placeOf)];
  const sources = [...programs, ...libraries];
  return tarOf([
    ...['usr', 'usr/bin', 'usr/lib', 'etc', 'proc', 'sys', 'dev'].map((name) => ({
      ...{ name: `${name}/`, type: 'directory' as const, mode: 0o755 },
    })),
    { name: 'tmp/', type: 'directory', mode: 0o1777 },
    ...[
      ['bin', 'usr/bin'],
      ['lib', 'usr/lib'],
      ['lib64', 'usr/lib'],
    ].map(([name = '', linkname = '']) => ({
      ...{ name, linkname, type: 'symlink' as const },
    })),
    { name: 'etc/passwd', content: 'root:x:0:0:root:/root:/bin/sh\n' },
    { name: 'etc/group', content: 'root:x:0:\n' },
    ...entries.map((name, i) => ({ name, mode: 0o755, content: readFileSync(realpathSync(sources[i] as string)) })),
  ]);
}

function placeOf(library: string): string {
  return `usr/lib/${library.replace(/^(\/usr)?\/lib(64)?\//, '').replace(/^\//, '')}`;
}

function librariesOf(program: string): string[] {
  const { stdout, status } = spawnSync('ldd', [program], { encoding: 'utf8' });
  return status === 0 ? [...stdout.matchAll(LOADED)].map(([, library = '']) => library) : [];
}

export interface Publishing {
  service: DeployService;
  /** Of the registry that clients use. */
  host: string;
  /** Of the owner of the project. */
  client: RegistryClient;
  /** The digest of the release image that the log of a deployment names. */
  imageOf(application: { log(id: string): Promise<string[]> }, deployment: { id: string }): Promise<string>;
  /** With which others pull its repository, and nothing else. */
  loginFor(image: string, seconds?: number): Promise<string>;
  close(): Promise<void>;
}

interface PublishingOptions {
  /** Keeps the images in the place of the embedded registry. */
  distribution?: Distribution | null;
  settings?: Record<string, string>;
  /** Of which the base has the libraries. */
  programs?: string[];
}

export async function startPublishing({ distribution, settings, programs }: PublishingOptions): Promise<Publishing> {
  const own = await freePort();
  const host = distribution?.host ?? `localhost:${own}`;
  const service = await startDeployService({
    ...{ REGISTRY_PORT: String(own), RELEASE_IMAGES: 'always', RELEASE_BASE_IMAGE: `${host}/bases/debian:1` },
    ...{ PREFERRED_NODE: 'host', ...settings },
    ...(distribution && { DISTRIBUTION_URL: distribution.url, DISTRIBUTION_EVENTS_KEY: distribution.eventsKey }),
  });
  const certificate = path.join(service.platform.config.registryDir, 'token.crt');
  await distribution?.start({ port: own, certificate });
  const made = await service.call('POST', '/v2/registries', {
    body: { name: 'bases' },
    headers: { Prefer: 'wait=20' },
  });
  expect([made.status, made.body.status]).toEqual([201, 'active']);
  const port = Number(host.slice(host.indexOf(':') + 1));
  const client = startRegistryClient({ port, username: 'owner', password: service.key });
  await pushImage(client, 'bases/debian', '1', { layers: [await glibcLayer(programs)], config: {}, gzip: true });
  await pushImage(client, 'bases/busybox', '1', { layers: [await busyboxLayer()] });
  return {
    ...{ service, host, client },
    async imageOf(application, { id }) {
      const line = (await application.log(id)).find((one) => one.startsWith('Released as '));
      expect(line).toMatch(/^Released as apps\/app_\w+@sha256:[0-9a-f]{64}$/);
      return (line as string).slice('Released as '.length);
    },
    async loginFor(image, seconds = 300) {
      const repository = image.slice(0, image.indexOf('@'));
      const { username, password } = await pullLoginOf(
        { ...service.platform, sql: service.platform.database },
        repository,
        seconds,
      );
      return `${username}:${password}`;
    },
    close: () => service.close(),
  };
}

/** The answer of a program of others; rejects with what it says. */
export async function skopeo(...words: string[]): Promise<string> {
  return (await run('skopeo', words, { maxBuffer: 64 * 2 ** 20 })).stdout;
}

/** Copies an image into a directory as an OCI layout. */
export async function pullLayout(image: string, login: string): Promise<string> {
  const directory = mkdtempSync(path.join(tmpdir(), 'layout-'));
  await skopeo('copy', '--src-tls-verify=false', '--src-creds', login, `docker://${image}`, `oci:${directory}:latest`);
  return directory;
}

interface Container {
  get(place: string): Promise<string>;
  /** Runs a command beside the program, in the same files and as the same user. */
  exec(...words: string[]): Promise<string>;
}

/**
 * Runs an image with buildah, which needs no control groups, in the network of the host, until `work` has ended.
 * @param words in the place of Cmd
 */
export async function withContainer<T>(
  { image, login, words, env = {} }: { image: string; login: string; words?: string[]; env?: object },
  work: (container: Container) => Promise<T>,
): Promise<T> {
  const port = await freePort();
  const root = mkdtempSync(path.join(tmpdir(), 'buildah-'));
  const storage = ['--root', path.join(root, 'root'), '--runroot', path.join(root, 'run'), '--storage-driver', 'vfs'];
  // Not in this thread: the registry is in this process.
  const buildah = async (...more: string[]): Promise<string> =>
    (await run('buildah', [...storage, ...more], { timeout: 60_000 })).stdout.trim();
  const container = await buildah('from', '--quiet', '--tls-verify=false', '--creds', login, image);
  const { OCIv1 } = JSON.parse(await buildah('inspect', container)) as { OCIv1: { config: ImageConfig } };
  const { Entrypoint = [], Cmd = [] } = OCIv1.config;
  const variables = Object.entries({ PORT: port, ...env }).flatMap(([key, value]) => [
    '--env',
    `${key}=${String(value)}`,
  ]);
  const runWords = [...storage, 'run', '--isolation', 'chroot', ...variables, container, '--'];
  const child = spawn('buildah', [...runWords, ...Entrypoint, ...(words ?? Cmd)], { detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (output += String(text)));
  try {
    const get = (place: string): Promise<string> => textOf(port, place);
    const answers = (): Promise<boolean> =>
      get('/').then(
        () => true,
        () => false,
      );
    await waitFor('the container answers', answers, 20_000).catch((error: unknown) => {
      throw new Error(`${String(error)}: ${output}`);
    });
    return await work({ get, exec: (...more) => run('buildah', [...runWords, ...more]).then(({ stdout }) => stdout) });
  } finally {
    // Absent where the program has ended by itself.
    spawnSync('kill', ['-KILL', '--', `-${child.pid}`]);
    await buildah('rm', container).catch(() => undefined);
    rmSync(root, { recursive: true, force: true });
  }
}

interface ImageConfig {
  Entrypoint?: string[];
  Cmd?: string[];
}

function textOf(port: number, place: string): Promise<string> {
  return new Promise((resolve, reject) => {
    http
      .get({ host: '127.0.0.1', port, path: place, agent: false }, (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.on('end', () => resolve(body)).on('error', reject);
      })
      .on('error', reject);
  });
}
