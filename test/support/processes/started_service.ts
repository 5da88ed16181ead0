// What `npm start` starts, with a data directory of its own: used through its public API alone, from the first key on.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free_port';

/* oxlint-disable typescript/no-explicit-any -- answers are whatever the service sends */
export interface StartedService {
  ingressPort: number;
  /** Sends a request with the first key. @throws Error where the answer is a problem */
  call(method: string, target: string, body?: object): Promise<any>;
  /** Reads the resource until its status is one of these. */
  waitFor(target: string, statuses: readonly string[], withinMs?: number): Promise<any>;
  close(): Promise<void>;
  /** With its data directory and its settings, for programs that run beside it. */
  env: NodeJS.ProcessEnv;
  first: FirstKey;
}

/** A data directory that is there: it stays when the service is closed, and the key is of before. */
interface Existing {
  data: string;
  first?: FirstKey;
}

const ROOT = path.resolve(__dirname, '../../..');
const START_MS = 120_000;

export async function startService(
  settings: Record<string, string> = {},
  existing?: Existing,
): Promise<StartedService> {
  const data = existing?.data ?? fs.mkdtempSync(path.join(os.tmpdir(), 'started-'));
  // As root, PostgreSQL runs as another user, who must get through.
  fs.chmodSync(data, 0o755);
  const [port, ingressPort] = [await freePort(), await freePort()];
  const places = { PORT: String(port), ADMIN_PORT: '0', INGRESS_PORT: String(ingressPort), PLATFORM_DATA_DIR: data };
  // Registries may be at private addresses where the tests run.
  const shared = { NETWORK: 'shared', VOLUME_DRIVER: 'directory', PREFERRED_NODE: 'host', PREFERRED_PYTHON: 'host' };
  const env = { ...process.env, NODE_ENV: 'production', ...shared, ...places, ...settings };
  const child = spawn(process.execPath, ['tools/scripts/start.mjs', 'server/main.js'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (text: Buffer) => (output = (output + text.toString()).slice(-20_000)));
  const first = existing?.first ?? (await firstKey(data, child, () => output));
  if (existing?.first) await answering(`http://127.0.0.1:${port}/v2/me`, first, child, () => output);
  const call = (method: string, target: string, body?: object) =>
    send(first, `http://127.0.0.1:${port}`, method, target, body);
  return {
    ...{ ingressPort, env, first, call },
    waitFor: (target, statuses, withinMs = 60_000) => waitFor(call, target, statuses, withinMs),
    async close() {
      child.kill('SIGTERM');
      if (child.exitCode === null) await new Promise((resolve) => child.once('exit', resolve));
      if (!existing) fs.rmSync(data, { recursive: true, force: true });
    },
  };
}

/** The address of a new Git repository with the files of a directory. */
export function makeRepository(files: string, repository: string): string {
  fs.cpSync(files, repository, { recursive: true });
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', ...args], { cwd: repository });
  git('init', '--quiet', '--initial-branch=main');
  git('add', '--all', '--force');
  git('commit', '--quiet', '--message=First version');
  return `file://${repository}`;
}

export interface FirstKey {
  key: string;
  project_id: string;
}

async function firstKey(data: string, child: ChildProcess, output: () => string): Promise<FirstKey> {
  const file = path.join(data, 'first-key.json');
  for (const end = performance.now() + START_MS; performance.now() < end && child.exitCode === null; await sleep(200)) {
    if (!fs.existsSync(file)) continue;
    const found = JSON.parse(fs.readFileSync(file, 'utf8')) as FirstKey & { base_url: string };
    await answering(`${found.base_url}/v2/me`, found, child, output);
    return found;
  }
  child.kill('SIGKILL');
  throw new Error(`the service did not start:\n${output()}`);
}

async function answering(url: string, { key }: FirstKey, child: ChildProcess, output: () => string): Promise<void> {
  for (const end = performance.now() + START_MS; performance.now() < end && child.exitCode === null; await sleep(200)) {
    const answer = await fetch(url, { headers: { Authorization: `Bearer ${key}` } }).catch(() => null);
    if (answer?.ok) return;
  }
  child.kill('SIGKILL');
  throw new Error(`the service did not start:\n${output()}`);
}

async function send(first: FirstKey, base: string, method: string, target: string, body?: object): Promise<any> {
  const answer = await fetch(base + target, {
    method,
    headers: {
      Authorization: `Bearer ${first.key}`,
      'X-Svc-Project': first.project_id,
      'Content-Type': 'application/json',
      // While a test waits for a program, the service closes what is idle.
      Connection: 'close',
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${target}: ${answer.status} ${text}`);
  return text === '' ? null : JSON.parse(text);
}

async function waitFor(
  call: StartedService['call'],
  target: string,
  statuses: readonly string[],
  withinMs: number,
): Promise<any> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await call('GET', target);
    if (statuses.includes(found.status)) return found;
    if (performance.now() > end) throw new Error(`${target} is still ${found.status}: ${found.status_reason ?? ''}`);
    await sleep(500);
  }
}
