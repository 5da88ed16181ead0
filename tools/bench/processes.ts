// The servers under load, each in a separate process on a free port of the loopback interface.
import { spawn, type ChildProcess } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Usage {
  /** Seconds of user and system time since its start. */
  cpu: number;
  /** Resident memory in bytes. */
  rss: number;
}

export interface Server {
  pid: number;
  port: number;
  /** Milliseconds from spawn to the first moment when it serves. */
  startMs: number;
  usage(): Promise<Usage>;
  /** As an operator stops it. */
  stop(): Promise<void>;
}

/** How a Node.js program is run. */
export interface Runtime {
  /** The program `node`. */
  node: string;
  flags?: string[];
}

type Settings = Record<string, string>;

const START_LIMIT_MS = 60_000;
const POLL_MS = 5;

/** As `npm start` has it. */
const NODE_FLAGS = ['--min-semi-space-size=8', '--max-semi-space-size=8', '--initial-old-space-size=80'];

/** The service as `npm start` runs it in production, its log going to a file as it would to a log collector. */
export async function startApi(runtime: Runtime, dataDir: string, settings: Settings): Promise<Server> {
  const log = path.join(dataDir, `api-${process.pid}-${Date.now()}.log`);
  const out = openSync(log, 'w', 0o600);
  const started = performance.now();
  const flags = [...NODE_FLAGS, ...(runtime.flags ?? [])];
  const child = spawn(runtime.node, [...flags, path.resolve(__dirname, '../../server/main.js')], {
    stdio: ['ignore', out, 'inherit'],
    env: serviceEnv(dataDir, settings),
  });
  endWithUs(child);
  const { address, admin_port } = await readyLine(child, log);
  const startMs = performance.now() - started;
  return {
    pid: child.pid as number,
    port: Number(new URL(address).port),
    startMs,
    usage: () => metrics(admin_port),
    stop: () => stop(child),
  };
}

function serviceEnv(dataDir: string, settings: Settings): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return {
    PATH,
    HOME,
    NODE_ENV: 'production',
    PLATFORM_DATA_DIR: dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    ...settings,
  };
}

/** A server of tools/bench/references: it prints its port and answers GET /usage. */
export async function startReference(
  runtime: Runtime,
  name: string,
  words: string[],
): Promise<Server> {
  const started = performance.now();
  const { PATH, HOME } = process.env;
  const file = path.resolve(__dirname, `references/${name}.js`);
  const child = spawn(runtime.node, [...(runtime.flags ?? []), file, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH, HOME, NODE_ENV: 'production' },
  });
  endWithUs(child);
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout?.once('data', (text: Buffer) => resolve(Number(String(text))));
    child.once('exit', (code) => reject(new Error(`the reference ${name} ended with ${code}`)));
  });
  return {
    pid: child.pid as number,
    port,
    startMs: performance.now() - started,
    usage: () => usageOf(port),
    stop: () => stop(child),
  };
}

async function usageOf(port: number): Promise<Usage> {
  const { cpu, rss } = (await (await fetch(`http://127.0.0.1:${port}/usage`)).json()) as {
    cpu: NodeJS.CpuUsage;
    rss: number;
  };
  return { cpu: (cpu.user + cpu.system) / 1e6, rss };
}

process.setMaxListeners(0);

/** A run that breaks off leaves nothing behind. */
function endWithUs(child: ChildProcess): void {
  process.once('exit', () => child.kill('SIGTERM'));
}

async function readyLine(child: ChildProcess, log: string): Promise<{ address: string; admin_port: number }> {
  for (const until = Date.now() + START_LIMIT_MS; Date.now() < until; await sleep(POLL_MS)) {
    const line = readFileSync(log, 'utf8')
      .split('\n')
      .find((text) => text.includes('"msg":"ready"'));
    if (line) return JSON.parse(line) as { address: string; admin_port: number };
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode}`);
  }
  child.kill('SIGKILL');
  throw new Error('the service does not get ready');
}

async function metrics(port: number): Promise<Usage> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const value = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
  return { cpu: value('process_cpu_seconds_total'), rss: value('process_resident_memory_bytes') };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  await ended;
}
