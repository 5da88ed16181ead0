// The container registry beside Debian's docker-registry: a layer of 1 GB is pushed to both and pulled from both, in
// turns, by curl. Then the memory of the service while a larger one goes there and back, and how long a deployment
// of an image takes whose layers are on the host.
//   npm run bench:images -- [--mb=1000] [--rounds=3] [--large-mb=2000] [--cpu-prof=<directory>]
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { processesWith } from '../../demo/traces';
import { visit } from '../../demo/visitors';
import { openEmbedded } from '../../../server/platform/embedded';
import { freePort } from '../../../test/support/processes/free_port';
import { busyboxLayer, pushImage, siteLayer } from '../../../test/support/builds/images';
import { hasProgram } from '../../../test/support/runner/has_program';
import { startRegistryClient } from '../../../test/support/registries/registry_client';
import { median } from '../measure';
import { requirePrograms, runBench } from '../run';
import { startApi, type Server } from '../processes';

const run = promisify(execFile);
const MB = 1_000_000;
const TARGET = 0.9;
const UP_WITHIN_MS = 30_000;

const { values } = parseArgs({
  options: {
    mb: { type: 'string', default: '1000' },
    rounds: { type: 'string', default: '3' },
    'large-mb': { type: 'string', default: '2000' },
    'cpu-prof': { type: 'string' },
  },
});

interface Layer {
  file: string;
  digest: string;
  bytes: number;
}

/** Where layers go, and with what. */
interface Target {
  base: string;
  name: string;
  token(): Promise<string>;
}

/** A file of random bytes, other ones each time: what a registry has it is not sent. */
function makeLayer(directory: string, mb: number): Layer {
  const file = path.join(directory, 'layer');
  const hash = createHash('sha256');
  const piece = randomBytes(MB);
  const out = openSync(file, 'w');
  for (let count = 0; count < mb; count += 1) {
    randomBytes(64).copy(piece);
    hash.update(piece);
    writeSync(out, piece);
  }
  closeSync(out);
  return { file, digest: `sha256:${hash.digest('hex')}`, bytes: mb * MB };
}

async function push({ base, name, token }: Target, { file, digest }: Layer): Promise<number> {
  const authorization = `Authorization: Bearer ${await token()}`;
  const begin = performance.now();
  const started = await fetch(`${base}/v2/${name}/blobs/uploads/`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${await token()}` },
  });
  const place = new URL(started.headers.get('location') ?? '', base);
  place.searchParams.set('digest', digest);
  await run('curl', ['-sSf', '-H', authorization, '-H', 'Expect:', '-X', 'PUT', '-T', file, place.href]);
  return performance.now() - begin;
}

async function pull({ base, name, token }: Target, { digest }: Layer): Promise<number> {
  const headers = ['-H', `Authorization: Bearer ${await token()}`];
  const begin = performance.now();
  await run('curl', ['-sSf', ...headers, '-o', '/dev/null', `${base}/v2/${name}/blobs/${digest}`]);
  return performance.now() - begin;
}

async function compare(ours: Target, theirs: Target, directory: string): Promise<void> {
  const found = { push: [] as number[], pull: [] as number[] };
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const layer = makeLayer(directory, Number(values.mb));
    // Whoever begins finds the machine as the other one left it.
    const order = round % 2 ? [theirs, ours] : [ours, theirs];
    for (const [kind, work] of Object.entries({ push, pull })) {
      const times = new Map<Target, number>();
      for (const target of order) times.set(target, await work(target, layer));
      const [mine, other] = [times.get(ours) as number, times.get(theirs) as number];
      found[kind as 'push' | 'pull'].push(other / mine);
      const speed = (ms: number): string => `${Math.round(layer.bytes / MB / (ms / 1000))} MB/s`;
      console.log(`${kind}: ${speed(mine)}, docker-registry ${speed(other)}, ratio ${(other / mine).toFixed(2)}`);
    }
  }
  for (const [kind, ratios] of Object.entries(found)) {
    const middle = median(ratios);
    const verdict = middle >= TARGET ? 'met' : 'missed';
    console.log(`${kind} of ${values.mb} MB: ${middle.toFixed(2)} of docker-registry (${TARGET}: ${verdict})`);
  }
}

function profileFlags(): string[] {
  const { 'cpu-prof': directory } = values;
  return directory === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${path.resolve(directory)}`];
}

/** The most that the service has had in memory, in MB. */
function peakOf({ pid }: Pick<Server, 'pid'>): number {
  const [, kilobytes = '0'] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kilobytes) / 1024);
}

async function main(): Promise<void> {
  requirePrograms('curl', 'docker-registry');
  const directory = mkdtempSync(path.join(os.tmpdir(), 'bench-images-'));
  // The engine of the database runs as another user where we are root.
  chmodSync(directory, 0o711);
  const database = await openEmbedded({ dataDir: directory });
  const [registryPort, otherPort, ingressPort] = [await freePort(), await freePort(), await freePort()];
  const service = await startApi({ node: process.execPath, flags: profileFlags() }, directory, {
    ...{ REGISTRY_PORT: String(registryPort), INGRESS_PORT: String(ingressPort), DATABASE_URL: database.url },
    ...{ DNS_PORT: '0', SMTP_PORTS: '0', MX_PORT: '0', S3_PORT: '0' },
  });
  const configuration = path.join(directory, 'distribution.yml');
  writeFileSync(
    configuration,
    `version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n` +
      `storage: {filesystem: {rootdirectory: ${path.join(directory, 'distribution')}}}\n` +
      `http: {addr: "127.0.0.1:${otherPort}", secret: bench}\n`,
  );
  const other = spawn('/usr/bin/docker-registry', ['serve', configuration], { stdio: 'ignore' });
  try {
    const theirs = { base: `http://127.0.0.1:${otherPort}`, name: 'bench/layer', token: () => Promise.resolve('none') };
    await answers(`${theirs.base}/v2/`);
    const ours = await ourTarget(service, directory, registryPort);
    console.log(`load ${os.loadavg()[0]?.toFixed(1)}, ${os.cpus().length} cores`);
    await compare(ours, theirs, directory);
    const before = peakOf(service);
    const large = makeLayer(directory, Number(values['large-mb']));
    await push(ours, large);
    await pull(ours, large);
    console.log(`a layer of ${values['large-mb']} MB: memory at most ${peakOf(service)} MB, before it ${before} MB`);
    if (hasProgram('busybox')) await deployments(service, directory, { registryPort, ingressPort });
  } finally {
    other.kill('SIGKILL');
    await service.stop();
    await database.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

interface Installation {
  key: string;
  call<T = Record<string, string>>(method: string, path: string, body?: object): Promise<T>;
}

function installationOf(service: Server, directory: string): Installation {
  const first = JSON.parse(readFileSync(path.join(directory, 'first-key.json'), 'utf8')) as Record<string, string>;
  const headers = {
    ...{ Authorization: `Bearer ${first.key}`, 'X-Svc-Project': first.project_id as string },
    ...{ 'Content-Type': 'application/json', Prefer: 'wait=20' },
  };
  return {
    key: first.key as string,
    async call<T>(method: string, place: string, body?: object) {
      const url = `http://127.0.0.1:${service.port}${place}`;
      const answer = await fetch(url, { method, headers, body: body && JSON.stringify(body) });
      if (!answer.ok) throw new Error(await answer.text());
      return (answer.status === 204 ? undefined : await answer.json()) as T;
    },
  };
}

async function ourTarget(service: Server, directory: string, registryPort: number): Promise<Target> {
  const { key, call } = installationOf(service, directory);
  await call('POST', '/v2/registries', { name: 'bench' });
  const base = `http://127.0.0.1:${registryPort}`;
  const basic = Buffer.from(`owner:${key}`).toString('base64');
  return {
    ...{ base, name: 'bench/layer' },
    async token() {
      const url = `${base}/token?scope=${encodeURIComponent('repository:bench/layer:pull,push')}`;
      const issued = await fetch(url, { headers: { Authorization: `Basic ${basic}` } });
      return ((await issued.json()) as { token: string }).token;
    },
  };
}

const DEPLOYMENTS = 7;
const LOOK_MS = 10;

/** From POST to the first 200 of the new image. The first one pulls; the layers of the others are there. */
async function deployments(
  service: Server,
  directory: string,
  { registryPort, ingressPort }: { registryPort: number; ingressPort: number },
): Promise<void> {
  const { key, call } = installationOf(service, directory);
  const client = startRegistryClient({ port: registryPort, username: 'owner', password: key });
  const base = await busyboxLayer();
  for (const tag of ['a', 'b'])
    await pushImage(client, 'bench/site', tag, { layers: [base, await siteLayer({ 'index.html': tag })], gzip: true });
  const image = `localhost:${registryPort}/bench/site`;
  const source = { type: 'image', image: `${image}:a` };
  const { id = '', default_hostname = '' } = await call('POST', '/v2/applications', { name: 'site', source });
  const times: number[] = [];
  for (let round = 0; round <= DEPLOYMENTS; round += 1) {
    const tag = round % 2 ? 'b' : 'a';
    const begin = performance.now();
    const posted = await call('POST', `/v2/applications/${id}/deployments`, { image: `${image}:${tag}` });
    await until(async () => {
      const { status, body } = await visit(ingressPort, default_hostname).catch(() => ({ status: 0, body: '' }));
      return status === 200 && body === tag;
    });
    times.push(performance.now() - begin);
    const place = `/v2/applications/${id}/deployments/${posted.id}`;
    await until(async () => (await call('GET', place)).status === 'active');
  }
  await call('DELETE', `/v2/applications/${id}`);
  await until(() => Promise.resolve(processesWith(path.join(directory, 'runtime/units')).length === 0));
  const [first = 0, ...later] = times;
  const seconds = (ms: number): string => (ms / 1000).toFixed(2);
  console.log(`from POST deployments to the first 200: ${seconds(first)} s with the pull`);
  console.log(`of a cached image: ${seconds(median(later))} s (${later.map(seconds).join(', ')})`);
}

async function until(look: () => Promise<boolean>): Promise<void> {
  for (const end = Date.now() + UP_WITHIN_MS; !(await look());) {
    if (Date.now() > end) throw new Error('a deployment does not answer');
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function answers(url: string): Promise<void> {
  for (const end = Date.now() + UP_WITHIN_MS; ;) {
    const isUp = await fetch(url).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    if (Date.now() > end) throw new Error('docker-registry does not answer');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

runBench(main);
