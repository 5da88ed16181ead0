// The service as with `npm start`, including its database, with separate ports and directory.
import { spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { apiClient, type Api } from './api';
import { freePort } from './ports';

export interface Stage {
  api: Api;
  /** Address of the API, and the headers of its owner. */
  address: string;
  headers: Record<string, string>;
  directory: string;
  /** Of the ingress. */
  port: number;
  adminPort: number;
  /** Of the first process of the service. */
  pid: number;
  /** Last lines of the service's log that are warnings or errors. */
  complaints(): string[];
  /** Ends the service as an operator does. The directory stays. */
  stop(): Promise<void>;
  /** kill -9, and waits for the end. The directory stays. */
  kill(): Promise<void>;
  /** Ends the service, and removes the directory. */
  close(): Promise<void>;
}

const READY_WITHIN_MS = 60_000;
const STOPPED_WITHIN_MS = 40_000;
const COMPLAINTS_MAX = 20;

// The directory goes with the demo: it would download another Node.js each time.
const ownSettings = {
  ...{ PORT: '0', ADMIN_PORT: '0', VOLUME_DRIVER: 'directory', ALLOW_LOCAL_GIT: '1' },
  PREFERRED_NODE: 'host',
  PREFERRED_PYTHON: 'host',
};

/**
 * @param settings of the service, which override those of the stage
 * @param before directory of a stage that has ended: the service goes on with it
 */
export async function openStage(settings: Record<string, string> = {}, before?: string): Promise<Stage> {
  const directory = before ?? mkdtempSync(path.join(os.tmpdir(), 'platform-demo-'));
  chmodSync(directory, 0o711); // as root, the database and the applications run as other users
  const port = await freePort();
  const env = {
    ...ownSettings,
    ...{ PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', PLATFORM_DATA_DIR: directory },
    ...{ INGRESS_PORT: String(port), ...settings },
  };
  const log = path.join(directory, 'service.log');
  // In a separate process group: Ctrl-C must not reach the service, which is needed for the clean-up.
  const words = ['--require', path.join(__dirname, 'dns_root.js'), path.resolve(__dirname, '../../server/main.js')];
  const child = spawn(process.execPath, ['--max-semi-space-size=8', ...words], {
    env,
    detached: true,
    stdio: ['ignore', openSync(log, 'w', 0o600), 'inherit'],
  });
  const stop = (): Promise<void> => end(child);
  const kill = (): Promise<void> => end(child, 'SIGKILL');
  const close = async (): Promise<void> => {
    await stop();
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    const { address, admin_port: adminPort } = await readyLine(child, log);
    const { key, project_id } = JSON.parse(readFileSync(path.join(directory, 'first-key.json'), 'utf8')) as {
      key: string;
      project_id: string;
    };
    const headers = { Authorization: `Bearer ${key}`, 'X-Svc-Project': project_id };
    const api = apiClient(address, key, project_id);
    const complaints = (): string[] => complaintsOf(log);
    const pid = child.pid!;
    return { api, address, headers, directory, port, adminPort, pid, complaints, stop, kill, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function readyLine(child: ChildProcess, log: string): Promise<{ address: string; admin_port: number }> {
  for (const until = Date.now() + READY_WITHIN_MS; Date.now() < until; await sleep(20)) {
    const line = readFileSync(log, 'utf8')
      .split('\n')
      .find((text) => text.includes('"msg":"ready"'));
    if (line) return JSON.parse(line) as { address: string; admin_port: number };
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}`);
  }
  throw new Error('the service did not get ready');
}

function complaintsOf(log: string): string[] {
  const lines = readFileSync(log, 'utf8').split('\n');
  return lines.filter((line) => /"level":"(warn|error|fatal)"/.test(line)).slice(-COMPLAINTS_MAX);
}

async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill(signal);
  const late = setTimeout(() => child.kill('SIGKILL'), STOPPED_WITHIN_MS);
  await ended;
  clearTimeout(late);
}
