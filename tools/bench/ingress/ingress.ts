// npm run bench:ingress: requests per second through the ingress beside those straight to the same small application.
//   npm run bench:ingress -- [--quick] [--profile=<folder>] [--case=<part of a name>]
//   npm run bench:ingress -- --networks [--quick]    the same application in an isolated network, and without one
// Where HAProxy is installed, it stands before the same application in the same rounds, as a yardstick.
// The application, the ingress and the load are a process each. On two cores the three share the CPU time that the
// application and the load have for themselves in direct requests: the ratio reflects that too.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { driverContext } from '../../../core/driver';
import type { Route } from '../../../engines/ingress/ingress';
import { openIngress } from '../../../engines/ingress/http/http';
import type { NetworkLocation } from '../../../core/outbound/network_location';
import { openNetworks } from '../../../drivers/network/open';
import { startHaproxy } from './ingress_haproxy';
import { load, type Shot } from '../load';
import { printLine } from '../run';

const TARGET = 0.5;
/** Of the processor time of the ingress for a request: either is enough. */
const CPU_TARGET = 30;
const NETWORK_TARGET = 0.9;
const CONNECTIONS = 32;
const HOST = 'app.example.com';
/** In the table of a second ingress beside the one that is measured. A look-up costs nothing; the heap is larger. */
const OTHER_HOSTS = 10_000;
const ITEMS = Array.from({ length: 8 }, (_, index) => ({
  id: index,
  name: `Item number ${index}`,
  price_cents: 100 * index,
  description: 'A thing that somebody may want to have.',
}));

interface Part {
  port: number;
  cpuSeconds(): Promise<number>;
  stop(): void;
}
interface Case {
  name: string;
  target: boolean;
  crowded?: boolean;
  next(): Shot;
}
interface Plan {
  rounds: number;
  milliseconds: number;
}
/** Sufficient ratios, either of the two; 0: not used. */
interface Targets {
  ratio?: number;
  cpu?: number;
  yardstick?: Part | null;
}
interface Measured {
  rps: number;
  p99: number;
  cpuMicroseconds: number;
}

const CASES: Case[] = [
  { name: 'GET, 1 KB of JSON', target: true, next: shot('GET', '/items', null, '{"items"') },
  { name: 'GET, 13 bytes', target: true, next: shot('GET', '/', null, 'Hello, World!') },
  {
    name: 'GET, 13 bytes, 10,000 other hosts',
    target: false,
    crowded: true,
    next: shot('GET', '/', null, 'Hello, World!'),
  },
  { name: 'GET, 100 KB', target: false, next: shot('GET', '/large', null, 'x') },
  { name: 'POST, 1 KB', target: false, next: shot('POST', '/', 'x'.repeat(1_024), '1024') },
];

async function main(): Promise<void> {
  const options = { quick: { type: 'boolean' }, profile: { type: 'string' }, networks: { type: 'boolean' } } as const;
  const { values } = parseArgs({ options: { ...options, case: { type: 'string', default: '' } } });
  const plan = values.quick ? { rounds: 2, milliseconds: 500 } : { rounds: 6, milliseconds: 1_500 };
  if (values.networks) return compareNetworks(plan);
  const app = await start('app');
  const crowded = await start('gate', [String(app.port), String(OTHER_HOSTS)]);
  const gate = await start(
    'gate',
    [String(app.port), '0'],
    values.profile ? ['--cpu-prof', `--cpu-prof-dir=${path.resolve(values.profile)}`] : [],
  );
  const haproxy = await startHaproxy(HOST, app.port);
  try {
    printHead(plan);
    printLine(
      '| Case | direct rps | ingress rps | ratio | direct p99 ms | ingress p99 ms | app CPU µs | ingress CPU µs ' +
        `| target | HAProxy ${haproxy?.version ?? 'absent'} ratio | its CPU µs |`,
    );
    printLine('|---|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|');
    for (const one of CASES.filter(({ name }) => name.includes(values.case)))
      printLine(await compare(one, app, one.crowded ? crowded : gate, plan, { yardstick: haproxy, cpu: CPU_TARGET }));
  } finally {
    haproxy?.stop();
    crowded.stop();
    gate.stop();
    app.stop();
  }
}

function printHead({ rounds, milliseconds }: Plan): void {
  printLine(
    `Node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), load ` +
      `${os.loadavg()[0]?.toFixed(1)}; ${CONNECTIONS} connections, ${rounds} rounds of ${milliseconds} ms\n`,
  );
}

/** Cost of an isolated network for an application behind the ingress. */
async function compareNetworks(plan: Plan): Promise<void> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-bench-'));
  const networks = await openNetworks({
    directory,
    block: '10.242.0.0/24',
    openings: {
      resolvers: [],
      loopbackResolver: null,
      services: [],
      databases: [30_000, 30_999] as const,
      allowed: [],
    },
    memberOf: () => Promise.resolve(null),
    isTrial: true,
  });
  const { command, location } = await networks.ensure('bench', driverContext(60_000));
  const [shared, isolated] = [await start('app'), await start('app', [], [], command)];
  const [gate, other] = [
    await start('gate', [String(shared.port), '0']),
    await start('gate', [String(isolated.port), '0', JSON.stringify(location)]),
  ];
  try {
    printHead(plan);
    printLine(`Networks made by ${networks.name}\n`);
    printLine('| Case | shared rps | isolated rps | ratio | p99 ms | p99 ms | ingress CPU µs | CPU µs | target |');
    printLine('|---|--:|--:|--:|--:|--:|--:|--:|---|');
    for (const one of CASES.filter(({ crowded }) => !crowded))
      printLine(await compare(one, gate, other, plan, { ratio: NETWORK_TARGET }));
  } finally {
    for (const part of [gate, other, shared, isolated]) part.stop();
    await networks.remove('bench', driverContext(60_000));
    await networks.close();
    rmSync(directory, { recursive: true });
  }
}

/** In turn, round after round, so that a disturbance meets both; the best round of each counts. */
async function compare(
  { name, target, next }: Case,
  app: Part,
  gate: Part,
  { rounds, milliseconds }: Plan,
  { ratio: least = TARGET, cpu = 0, yardstick = null }: Targets = {},
): Promise<string> {
  const [direct, through, beside]: Measured[][] = [[], [], []];
  for (let round = 0; round <= rounds; round += 1) {
    const one = await measure(app, next, milliseconds);
    const other = await measure(gate, next, milliseconds);
    const third = yardstick && (await measure(yardstick, next, milliseconds));
    if (round === 0) continue; // warm-up
    direct?.push(one);
    through?.push(other);
    if (third) beside?.push(third);
  }
  const [a, b] = [best(direct ?? []), best(through ?? [])];
  const ratio = b.rps / a.rps;
  const isMet = ratio >= least || b.cpuMicroseconds <= cpu;
  const aim = cpu > 0 ? `≥ ${least} or ≤ ${cpu} µs` : `≥ ${least}`;
  const verdict = target ? `${aim}: ${isMet ? 'met' : 'MISSED'}` : '';
  const figures = [
    a.rps.toFixed(0),
    b.rps.toFixed(0),
    ratio.toFixed(2),
    ...[a.p99, b.p99, a.cpuMicroseconds, b.cpuMicroseconds].map((value) => value.toFixed(1)),
  ];
  const c = yardstick && best(beside ?? []);
  const ofOther = c ? [(c.rps / a.rps).toFixed(2), c.cpuMicroseconds.toFixed(1)] : [];
  return `| ${[name, ...figures, verdict, ...ofOther].join(' | ')} |`;
}

async function measure(part: Part, next: () => Shot, milliseconds: number): Promise<Measured> {
  const before = await part.cpuSeconds();
  const { requests, rps, p99 } = await load({ port: part.port, connections: CONNECTIONS, milliseconds, next });
  return { rps, p99, cpuMicroseconds: (((await part.cpuSeconds()) - before) / requests) * 1e6 };
}

function best(rounds: Measured[]): Measured {
  return {
    rps: Math.max(...rounds.map((round) => round.rps)),
    p99: Math.min(...rounds.map((round) => round.p99)),
    cpuMicroseconds: Math.min(...rounds.map((round) => round.cpuMicroseconds)),
  };
}

function shot(method: string, target: string, body: string | null, expected: string): () => Shot {
  const length = body === null ? '' : `Content-Length: ${body.length}\r\n`;
  const request =
    `${method} ${target} HTTP/1.1\r\nHost: ${HOST}\r\nUser-Agent: Mozilla/5.0 (bench)\r\nAccept: */*\r\n` +
    `Accept-Language: en\r\nCookie: session=0123456789abcdef\r\n${length}\r\n${body ?? ''}`;
  return () => ({ request, status: 200, body: expected });
}

async function start(
  role: 'app' | 'gate',
  args: string[] = [],
  execArgv: string[] = [],
  within: string[] = [],
): Promise<Part> {
  const [program = '', ...words] = [...within, process.execPath];
  const child = fork(__filename, [role, ...args], {
    execPath: program,
    execArgv: [...words, '--max-semi-space-size=8', ...execArgv],
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
  });
  process.once('exit', () => child.kill());
  const [port] = (await once(child, 'message')) as [number];
  const cpuSeconds = async (): Promise<number> => {
    child.send('usage');
    const [usage] = (await once(child, 'message')) as [{ user: number; system: number }];
    return (usage.user + usage.system) / 1e6;
  };
  return { port, cpuSeconds, stop: () => child.disconnect() };
}

function serveParent(port: number): void {
  process.on('message', () => process.send?.(process.cpuUsage()));
  process.on('disconnect', () => process.exit(0));
  process.send?.(port);
}

/** A small application: it routes, reads a body, makes JSON. */
function runApp(): void {
  const large = 'x'.repeat(100 * 1_024);
  const server = http.createServer((request, response) => {
    if (request.method === 'POST') {
      let size = 0;
      request
        .on('data', (chunk: Buffer) => (size += chunk.length))
        .on('end', () => answer(response, 'text/plain', String(size)));
    } else if (request.url === '/items') answer(response, 'application/json', JSON.stringify({ items: ITEMS }));
    else answer(response, 'text/plain', request.url === '/large' ? large : 'Hello, World!');
  });
  server.listen(0, '127.0.0.1', () => serveParent((server.address() as { port: number }).port));
}

function answer(response: http.ServerResponse, type: string, body: string): void {
  response.writeHead(200, { 'Content-Type': type, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

async function runGate(port: number, otherHosts: number, location?: NetworkLocation): Promise<void> {
  let lines = 0;
  const parts = { certificate: async () => null, challenge: async () => null, line: () => void (lines += 1) };
  const ingress = await openIngress({ host: '127.0.0.1', port: 0, tlsPort: null, parts });
  const route: Route = {
    application_id: 'app_1',
    preview_id: null,
    hosts: [HOST],
    targets: [{ instance_id: 'ins_1', port, ...(location && { location }) }],
    state: 'running',
    maintenance: false,
    force_https: false,
    request_timeout_ms: 30_000,
    sticky: false,
  };
  const others = Array.from({ length: otherHosts }, (_, index): Route => ({
    ...route,
    application_id: `app_other${index}`,
    hosts: [`h${index}.example.com`],
    targets: [],
  }));
  ingress.replaceRoutes([...others, route]);
  serveParent(ingress.ports.http);
}

const [, , role, port, otherHosts, location] = process.argv;
const run =
  role === 'app'
    ? async () => runApp()
    : role === 'gate'
      ? () =>
          runGate(Number(port), Number(otherHosts), location ? (JSON.parse(location) as NetworkLocation) : undefined)
      : main;
run().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
