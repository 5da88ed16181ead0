// npm run bench:logs: applications that print 1000 lines a second each, and what that does to the answers of the API.
//   npm run bench:logs -- [--quick] [--profile=<folder>]
// API, database and shipper are one process with its embedded server, as with `npm start`; units are real. Requests are
// sent at a fixed rate from another process, first without the log lines, then with them.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../../core/config';
import { mintId } from '../../../core/ids';
import { createLog } from '../../../core/log/log';
import { openLogBudget } from '../../../core/log/log_budget';
import { driverContext } from '../../../core/driver';
import { openLocalRuntime } from '../../../drivers/runtime/local';
import { named } from '../../../db/statement';
import { firstBoot, type FirstKey } from '../../../server/first_boot';
import { openPlatform, type Platform } from '../../../server/platform/platform';
import { startService } from '../../../server/service';
import { startShipper } from '../../../server/agents/shipper';
import { printLine } from '../run';

const APPLICATIONS = 10;
const LINES_A_SECOND = 1_000;
const PACE_MS = 10;

interface Ready {
  port: number;
  key: string;
  project: string;
  application: string;
}
interface Report {
  lines: number;
  expected: number;
  behindMs: number;
  cpuSeconds: number;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, profile: { type: 'string' } } });
  const seconds = values.quick ? 5 : 20;
  const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-logs-'));
  chmodSync(directory, 0o711); // as root, the database runs as another user
  const child = fork(__filename, ['serve', directory], {
    execArgv: [
      '--max-semi-space-size=8',
      ...(values.profile ? ['--cpu-prof', `--cpu-prof-dir=${path.resolve(values.profile)}`] : []),
    ],
  });
  process.once('exit', () => child.kill('SIGTERM'));
  try {
    const ready = (await next(child)) as Ready;
    printLine(
      `Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ` +
        `${os.loadavg()[0]?.toFixed(1)}; ${APPLICATIONS} applications of ${LINES_A_SECOND} lines/s for ${seconds} ` +
        `s, a request every ${PACE_MS} ms\n`,
    );
    printLine('| | GET volumes p50 ms | p99 ms | GET logs p50 ms | p99 ms |\n|---|--:|--:|--:|--:|');
    await request(ready, 2_000); // warm-up
    printLine(row('without lines', await request(ready, seconds * 1000)));
    child.send({ seconds });
    await sleep(1_000);
    printLine(row('with lines', await request(ready, (seconds - 1) * 1000)));
    const { lines, expected, behindMs, cpuSeconds } = (await next(child)) as Report;
    printLine(
      `\n${lines} of ${expected} lines are in the log, the last one ${behindMs.toFixed(0)} ms after its unit had ` +
        `ended; CPU of the process ${((cpuSeconds / seconds) * 100).toFixed(0)} % of a core, requests included.`,
    );
    if (lines !== expected) process.exitCode = 1;
  } finally {
    child.send('end');
    await once(child, 'exit');
    rmSync(directory, { recursive: true, force: true });
  }
}

async function next(child: ChildProcess): Promise<unknown> {
  const [message] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the service ended'))),
  ])) as [unknown];
  return message;
}

interface Times {
  volumes: number[];
  logs: number[];
}

/** In turn, at the pace whatever the answers take. */
async function request({ port, key, project, application }: Ready, ms: number): Promise<Times> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  const headers = { authorization: `Bearer ${key}`, 'x-svc-project': project };
  const times: Times = { volumes: [], logs: [] };
  const get = (place: string, into: number[]): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = performance.now();
      const request = http.get({ port, path: place, headers, agent }, (response) => {
        if (response.statusCode !== 200) return reject(new Error(`${place} answered ${response.statusCode}`));
        response.resume().on('end', () => resolve(void into.push(performance.now() - sent)));
      });
      request.on('error', reject);
    });
  const open: Promise<void>[] = [];
  for (let turn = 0, began = performance.now(); performance.now() - began < ms; turn += 1) {
    open.push(turn % 2 ? get('/v2/volumes', times.volumes) : get(`/v2/applications/${application}/logs`, times.logs));
    await sleep(Math.max(0, began + (turn + 1) * PACE_MS - performance.now()));
  }
  await Promise.all(open);
  agent.destroy();
  return times;
}

function row(name: string, { volumes, logs }: Times): string {
  const figures = [volumes, logs].flatMap((times) => [0.5, 0.99].map((share) => quantile(times, share).toFixed(1)));
  return `| ${[name, ...figures].join(' | ')} |`;
}

function quantile(times: number[], share: number): number {
  return [...times].sort((a, b) => a - b)[Math.ceil(times.length * share) - 1] ?? NaN;
}

/** The process that is measured. */
async function serve(directory: string): Promise<void> {
  const config = loadConfig({
    PLATFORM_DATA_DIR: path.join(directory, 'data'),
    PORT: '0',
    ADMIN_PORT: '0',
    LOG_LEVEL: 'warn',
    WORKER: 'separate',
    RATE_LIMIT_READ: '10000000',
  });
  const platform = await openPlatform(config, createLog('warn'));
  const service = await startService(platform);
  const first = (await firstBoot(platform)) as FirstKey;
  const units = await addInstances(platform, first.project_id);
  const runtime = await openLocalRuntime({
    directory: path.join(directory, 'units'),
    ports: [21_000, 21_099],
    sandbox: 'none',
    tenantUidBase: 700_000,
  });
  const budget = openLogBudget(config.logBytesPerSecond);
  const shipper = startShipper({ database: platform.database, runtime, log: platform.log, budget });
  process.on('message', (message: 'end' | { seconds: number }) => {
    if (message === 'end')
      void shipper
        .stop()
        .then(() => runtime.close())
        .then(() => service.close())
        .then(() => platform.close())
        .then(() => process.exit());
    else void print(platform, runtime, shipper, { directory, units: units.instances, seconds: message.seconds });
  });
  process.send?.({
    port: service.config.port,
    key: first.key,
    project: first.project_id,
    application: units.application,
  } satisfies Ready);
}

type Runtime = Awaited<ReturnType<typeof openLocalRuntime>>;

async function print(
  { database }: Platform,
  runtime: Runtime,
  shipper: ReturnType<typeof startShipper>,
  plan: { directory: string; units: string[]; seconds: number },
): Promise<void> {
  const files = path.join(plan.directory, 'files');
  mkdirSync(files);
  const before = process.cpuUsage();
  const handles = await Promise.all(
    plan.units.map((id) => runtime.start({ ...unit(files, plan.seconds), id }, driverContext(30_000))),
  );
  for (const id of plan.units) shipper.noticeUnit(id);
  for (const handle of handles) while ((await runtime.inspect(handle)).state === 'running') await sleep(50);
  const ended = performance.now();
  for (const id of plan.units) await shipper.shipRemaining(id);
  const behindMs = performance.now() - ended;
  const { user, system } = process.cpuUsage(before);
  const [counted] = await database.query<{ lines: number }>(named('select count(*)::int as lines from log_lines'), []);
  process.send?.({
    lines: counted?.lines ?? 0,
    expected: plan.units.length * plan.seconds * LINES_A_SECOND,
    behindMs,
    cpuSeconds: (user + system) / 1e6,
  } satisfies Report);
  for (const id of plan.units) await runtime.destroy(id, driverContext(30_000));
}

/** Prints in fifty-millisecond portions, as late as it must to have printed them all. */
function unit(directory: string, seconds: number): Omit<Parameters<Runtime['start']>[0], 'id'> {
  const total = seconds * LINES_A_SECOND;
  const script =
    "let n=0;const t=Date.now();const f=()=>{let s='';" +
    `while(n<Math.min(${total},(Date.now()-t)*${LINES_A_SECOND / 1000}))s+='2026-01-31T09:30:00.000Z INFO request ` +
    "'+(n++)+' took 12 ms, status 200, path /orders/items/of/somebody\\n';require('fs').writeSync(1,s);" +
    `if(n<${total})setTimeout(f,50)};f()`;
  const limits = { memory_mb: 256, cpus: 1, processes: 64, time_ms: null, output_bytes: 1 << 30, disk_mb: null };
  return {
    kind: 'service',
    command: `exec '${process.execPath}' -e "${script}"`,
    directory,
    root_directory: '.',
    mounts: [],
    env: {},
    tenant: 1,
    limits,
  };
}

async function addInstances(
  { database }: Platform,
  project: string,
): Promise<{ application: string; instances: string[] }> {
  const instances: string[] = [];
  let application = '';
  for (let index = 0; index < APPLICATIONS; index += 1) {
    const [app, deployment, release, instance] = [mintId('app'), mintId('dep'), mintId('rel'), mintId('ins')];
    const insert = (text: string, values: unknown[]): Promise<unknown> => database.query(named(text), values);
    await insert(
      `insert into applications (id, project_id, name, region, application_type, default_hostname, created_at,
        updated_at, next_at) values ($1, $2, $1, 'local', 's', $1, now(), now(), null)`,
      [app, project],
    );
    await insert(
      `insert into deployments (id, project_id, application_id, number, trigger, created_by, source, created_at,
        updated_at, next_at) values ($1, $2, $3, 1, 'manual', '{}', '{}', now(), now(), null)`,
      [deployment, project, app],
    );
    await insert(
      `insert into releases (id, project_id, application_id, deployment_id, settings, processes, variables,
        created_at, updated_at) values ($1, $2, $3, $4, '{}', '{}', '', now(), now())`,
      [release, project, app, deployment],
    );
    await insert(
      `insert into instances (id, project_id, application_id, process_id, process_type, deployment_id, release_id,
        created_at, updated_at, next_at) values ($1, $2, $3, $1, 'web', $4, $5, now(), now(), null)`,
      [instance, project, app, deployment, release],
    );
    instances.push(instance);
    application = app;
  }
  return { application, instances };
}

if (process.argv[2] === 'serve') void serve(process.argv[3] as string);
else void main();
