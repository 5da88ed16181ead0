// npm run bench:cli: how long svc takes to begin, beside Node itself and the command line of Heroku.
//   npm run bench:cli -- [--rounds=9] [--peers=<directory>]
// Both list the same number of rows of one server on this machine, which answers at once. Programs take turns.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { printLine, runBench } from '../run';

const HEROKU = 'heroku@11.10.0';
const ROWS = 20;
/** Of /proc, in Hz. */
const TICKS = 100;
const TARGET = 1.5;

interface Program {
  name: string;
  args: string[];
  env: Record<string, string>;
}

interface Taken {
  wallMs: number;
  /** Processor time of the child and its children; null where the system does not tell it. */
  cpuMs: number | null;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { rounds: { type: 'string' }, peers: { type: 'string' } } });
  const rounds = Number(values.rounds ?? 9);
  const home = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-cli-'));
  const server = await startStub();
  try {
    const { port } = server.address() as AddressInfo;
    const programs = [...ours(port), ...herokus(installHeroku(values.peers), port)].map((program) => ({
      ...program,
      env: { ...program.env, PATH: process.env.PATH ?? '', HOME: home },
    }));
    const load = os.loadavg()[0]?.toFixed(1);
    printLine(`Node ${process.version}, ${os.cpus().length} cores, load ${load}`);
    printLine(`${rounds} rounds after one to warm up`);
    report(await measure(programs, rounds));
  } finally {
    server.close();
    server.closeAllConnections();
    rmSync(home, { recursive: true, force: true });
  }
}

function ours(port: number): Program[] {
  const binary = path.resolve(__dirname, '../../../../clients/cli/dist/svc.cjs');
  if (!existsSync(binary)) throw new Error('clients/cli is not built: npm ci');
  const env = { SVC_URL: `http://127.0.0.1:${port}`, SVC_TOKEN: 'svc_bench', SVC_PROJECT: 'prj_bench' };
  return [
    { name: 'node -e 0', args: ['-e', '0'], env: {} },
    ...[['--version'], ['--help'], ['db', 'ls', '--json']].map((args) => ({
      name: `svc ${args.join(' ')}`,
      args: [binary, ...args],
      env,
    })),
  ];
}

function herokus(directory: string | undefined, port: number): Program[] {
  if (directory === undefined) return [];
  const binary = path.join(directory, 'node_modules/heroku/bin/run.js');
  const env = {
    ...{ HEROKU_HOST: `http://127.0.0.1:${port}`, HEROKU_API_KEY: 'bench' },
    ...{ HEROKU_SKIP_NEW_VERSION_CHECK: 'true', DISABLE_TELEMETRY: 'true' },
  };
  return [['--version'], ['--help'], ['apps', '--json']].map((args) => ({
    name: `heroku ${args.join(' ')}`,
    args: [binary, ...args],
    env,
  }));
}

/** The directory of the package, installed there by npm; undefined where it cannot be had. */
function installHeroku(given: string | undefined): string | undefined {
  const directory = given ?? path.join(os.tmpdir(), `platform-bench-${HEROKU.replace('@', '-')}`);
  if (existsSync(path.join(directory, 'node_modules/heroku/bin/run.js'))) return directory;
  mkdirSync(directory, { recursive: true });
  const args = ['install', '--prefix', directory, '--ignore-scripts', '--no-audit', '--no-fund', HEROKU];
  const { status } = spawnSync('npm', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status === 0) return directory;
  printLine(`${HEROKU} could not be installed, so there is nothing beside svc.`);
  return undefined;
}

async function startStub(): Promise<Server> {
  const at = '2026-01-01T00:00:00Z';
  const database = { engine: 'postgresql', engine_version: '18', storage_gb: 10, status: 'available', region: 'local' };
  const indexes = Array.from({ length: ROWS }, (_, index) => index);
  const rows = indexes.map((index) => ({ id: `row_${index}`, name: `name-${index}`, created_at: at }));
  const databases = { data: rows.map((row) => ({ ...row, ...database })), next_cursor: null };
  const applications = rows.map((row) => ({ ...row, owner: { email: 'a@example.com' }, region: { name: 'eu' } }));
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://bench');
    const body = pathname === '/account' ? { email: 'a@example.com' } : applications;
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(pathname === '/v2/databases' ? databases : body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function measure(programs: readonly Program[], rounds: number): Promise<Map<string, Taken[]>> {
  const taken = new Map<string, Taken[]>(programs.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round += 1)
    for (let index = 0; index < programs.length; index += 1) {
      // The order goes on by one from round to round, so that a disturbance meets all of them.
      const program = programs[(index + round) % programs.length] as Program;
      const one = await time(program);
      if (round > 0) taken.get(program.name)?.push(one);
    }
  return taken;
}

function time({ name, args, env }: Program): Promise<Taken> {
  const before = childTicks();
  const began = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (output += part.toString()));
  return new Promise((resolve, reject) =>
    child.once('close', (code) => {
      const wallMs = performance.now() - began;
      const after = childTicks();
      if (code !== 0) return reject(new Error(`${name} ended with ${code}:\n${output}`));
      resolve({ wallMs, cpuMs: before === null || after === null ? null : ((after - before) * 1000) / TICKS });
    }),
  );
}

/** User and system time of children that have ended (`cutime`, `cstime` of proc(5)). */
function childTicks(): number | null {
  if (!existsSync('/proc/self/stat')) return null;
  const fields = readFileSync('/proc/self/stat', 'utf8').replace(/^.*\) /, '').split(' ');
  return Number(fields[13]) + Number(fields[14]);
}

/** Ratios are those of the least disturbed rounds: a start takes less time than a turn of a busy machine. */
function report(taken: ReadonlyMap<string, Taken[]>): void {
  const least = (name: string): number => Math.min(...(taken.get(name) ?? []).map(({ wallMs }) => wallMs));
  const bare = least('node -e 0');
  printLine('| | ms, least | of `node -e 0` | ms, median | processor ms, median |');
  printLine('|---|--:|--:|--:|--:|');
  for (const [name, all] of taken) {
    const cpu = all.flatMap(({ cpuMs }) => (cpuMs === null ? [] : [cpuMs]));
    const middle = median(all.map(({ wallMs }) => wallMs)).toFixed(0);
    const ratio = (least(name) / bare).toFixed(2);
    const words = [least(name).toFixed(0), ratio, middle, cpu.length ? median(cpu).toFixed(0) : ''];
    printLine(`| \`${name}\` | ${words.join(' | ')} |`);
  }
  const version = least('svc --version') / bare;
  printLine(`svc --version: ${version.toFixed(2)} of node, target ${TARGET}: ${version <= TARGET ? 'met' : 'MISSED'}`);
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

runBench(main);
