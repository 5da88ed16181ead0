// A CPU profile of the service under the load of one case: self time by function and by package.
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from './processes';
import { table } from './report';

interface CallFrame {
  functionName: string;
  url: string;
  lineNumber: number;
}

interface CpuProfile {
  nodes: { id: number; callFrame: CallFrame }[];
  samples: number[];
  timeDeltas: number[];
}

const TOP = 25;
const WRITE_LIMIT_MS = 30_000;

/** Flags and settings for a service that can be profiled. */
export function profiled(
  folder: string,
  name: string,
): { flags: string[]; settings: Record<string, string>; file: string } {
  mkdirSync(folder, { recursive: true });
  const file = path.resolve(folder, `${name.replace(/\W+/g, '-').toLowerCase()}.cpuprofile`);
  rmSync(file, { force: true });
  return { file, flags: ['--require', path.join(__dirname, 'profiler.js')], settings: { BENCH_CPU_PROFILE: file } };
}

/** Profiles the server while `run` loads it. @returns the tables of the profile */
export async function takeProfile(server: Server, file: string, run: () => Promise<void>): Promise<string> {
  process.kill(server.pid, 'SIGUSR2');
  await run();
  process.kill(server.pid, 'SIGUSR2');
  for (const until = Date.now() + WRITE_LIMIT_MS; ; await sleep(100)) {
    const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
    if (text.endsWith('}')) return tablesOf(JSON.parse(text) as CpuProfile);
    if (Date.now() > until) throw new Error(`no profile came: ${file}`);
  }
}

function tablesOf(profile: CpuProfile): string {
  const frames = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map<string, number>();
  const packages = new Map<string, number>();
  let busy = 0;
  for (const [index, id] of profile.samples.entries()) {
    const frame = frames.get(id) as CallFrame;
    const time = profile.timeDeltas[index] ?? 0;
    if (frame.functionName === '(idle)' || frame.url === 'node:inspector') continue;
    busy += time;
    const owner = ownerOf(frame);
    add(packages, owner, time);
    add(
      functions,
      `${frame.functionName || '(anonymous)'} | ${frame.url ? `${shortOf(frame.url)}:${frame.lineNumber + 1}` : owner}`,
      time,
    );
  }
  const share = (time: number): string => `${((100 * time) / busy).toFixed(1)} %`;
  const rows = (times: Map<string, number>): string[][] =>
    [...times]
      .sort((a, b) => b[1] - a[1])
      .slice(0, TOP)
      .map(([name, time]) => [...name.split(' | '), share(time)]);
  return (
    `${table([['Function', 'where', 'self'], ...rows(functions)])}\n\n` +
    `${table([['Package', 'self'], ...rows(packages)])}`
  );
}

function add(times: Map<string, number>, name: string, time: number): void {
  times.set(name, (times.get(name) ?? 0) + time);
}

/** Package, folder of the product, or part of Node.js that a function belongs to. */
function ownerOf({ url, functionName }: CallFrame): string {
  if (!url) return functionName.startsWith('(') ? functionName : 'V8 and native code';
  if (url.startsWith('node:')) return url.split('/').slice(0, 2).join('/');
  const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1];
  if (name) return name;
  return `ours: ${/\/dist\/(\w+)\//.exec(url)?.[1] ?? 'compiled queries'}`;
}

function shortOf(url: string): string {
  return url.replace(/^.*(?:node_modules|dist)\//, '');
}
