// npm run bench:cdn: the embedded cache of CDN zones beside what has no cache, and Varnish.
//   npm run bench:cdn -- [speed|crowd|streams|size] [--waiters=50000] [--objects=1000000] [--gigabytes=10] [--quick]
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import { printLine, runBench } from '../run';
import { measureCrowd, measureStreams } from './crowd';
import { runApp, runFiles, runHost } from './roles';
import { measureSize, runStore } from './size';
import { compareSpeed } from './speed';
import { runVisitors } from './visitors';

const OPTIONS = { waiters: '50000', objects: '1000000', gigabytes: '10' };
const ROUNDS = { rounds: 6, milliseconds: 1_500 };
const QUICK_ROUNDS = { rounds: 2, milliseconds: 500 };

async function main(): Promise<void> {
  const text = (value: string) => ({ type: 'string' as const, default: value });
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      ...{ waiters: text(OPTIONS.waiters), objects: text(OPTIONS.objects), gigabytes: text(OPTIONS.gigabytes) },
      quick: { type: 'boolean' },
    },
  });
  const has = (part: string): boolean => !positionals.length || positionals.includes(part);
  const { rounds, milliseconds } = values.quick ? QUICK_ROUNDS : ROUNDS;
  const directory = mkdtempSync(path.join(tmpdir(), 'bench-cdn-'));
  printLine(`Node ${process.version}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`);
  try {
    if (has('speed')) await compareSpeed(directory, rounds, milliseconds);
    if (has('crowd')) await measureCrowd(directory, Number(values.waiters));
    if (has('streams')) await measureStreams(directory, Number(values.gigabytes));
    if (has('size')) await measureSize(directory, Number(values.objects));
  } finally {
    rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
  }
}

const ROLES = { app: runApp, files: runFiles, host: runHost, store: runStore, visitors: runVisitors };
const [, , role = '', options = '{}'] = process.argv;
if (role in ROLES) void (ROLES[role as 'host'] as (options: unknown) => unknown)(JSON.parse(options));
else runBench(main);
