// How fast a server answers its clients on the network of the host, and in a network of its project: there, from
// 127.0.0.1 of the host, and at a public endpoint, in turn. The load are the programs of the engines themselves.
import { execFile } from 'node:child_process';
import { readlinkSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Stage } from '../../demo/stage';
import { processesWith } from '../../demo/traces';
import type { EngineName, Login } from './databases_server';
import { median } from '../measure';

const ROUNDS = 8;
const CLIENTS = 16;
const REDIS_REQUESTS_PER_SECOND = 20_000;
const CREATED_WITHIN_MS = 120_000;

type Way = 'in its network' | '127.0.0.1 of the host' | 'public endpoint';
interface Target {
  host: string;
  port: number;
  /** Location of the load; resolved each time, since a change of the endpoints may restart a server. */
  within(): string[];
}

interface Server {
  stage: Stage;
  id: string;
  login: Login;
  targets: [Way, Target][];
}

/** Prints requests per second of each stage, and the ratio of the last one to the first. */
export async function queryTable(
  stages: Stage[],
  { engines, queries: seconds }: { engines: EngineName[]; queries: number },
  print: (line: string) => void,
): Promise<void> {
  print(`| ${CLIENTS} clients, requests/s, median of ${ROUNDS} | shared | isolated | ratio |\n|---|--:|--:|--:|`);
  for (const engine of engines.filter((one) => one !== 'mariadb'))
    for (const row of await queryRows(stages, engine, seconds)) print(row);
  print('');
}

async function queryRows(stages: Stage[], engine: EngineName, seconds: number): Promise<string[]> {
  const servers: Server[] = [];
  for (const stage of stages) servers.push(await createServer(stage, engine));
  const ways = servers[0]!.targets.map(([way]) => way);
  const found = new Map<string, number[]>();
  for (let round = 0; round < ROUNDS; round += 1)
    for (const [at, way] of ways.entries())
      for (const [side, { stage, login, targets }] of servers.entries()) {
        const key = `${way} ${side}`;
        const [, target] = targets[at]!;
        const requests = await (engine === 'redis' ? redisLoad : postgresqlLoad)(stage, login, target, seconds);
        found.set(key, [...(found.get(key) ?? []), requests]);
      }
  for (const { stage, id } of servers) await stage.api.call('DELETE', `/v2/databases/${id}`);
  return ways.map((way) => {
    const sides = servers.map((_, side) => median(found.get(`${way} ${side}`) ?? []));
    const cells = sides.map((requests) => requests.toFixed(0)).join(' | ');
    return `| ${engine}, ${way} | ${cells} | ${(sides.at(-1)! / sides[0]!).toFixed(2)} |`;
  });
}

async function createServer(stage: Stage, engine: EngineName): Promise<Server> {
  const { api } = stage;
  const { id } = await api.call('POST', '/v2/databases', { name: `queries-${engine}`, engine });
  await api.until<{ status: string }>(`/v2/databases/${id}`, ({ status }) => status === 'available', CREATED_WITHIN_MS);
  const login = await api.call<Login>('GET', `/v2/databases/${id}/credentials`);
  return { stage, id, login, targets: await targetsOf(stage, id, login) };
}

async function targetsOf({ api, directory }: Stage, id: string, login: Login): Promise<[Way, Target][]> {
  const { port } = login.endpoints[0]!;
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)?.address;
  const targets: [Way, Target][] = [
    [
      'in its network',
      { host: '127.0.0.1', port, within: () => enterNetworkOf(path.join(directory, 'databases', id)) },
    ],
    ['127.0.0.1 of the host', { host: '127.0.0.1', port, within: () => [] }],
  ];
  if (outside === undefined) return targets;
  const body = { name: 'open', access: 'public', allowed_sources: [`${outside}/32`] };
  const place = `/v2/databases/${id}/endpoints`;
  const made = await api.call('POST', place, body);
  const endpoint = await api.until<{ status: string; port: number }>(
    `${place}/${made.id}`,
    ({ status }) => status === 'active',
    CREATED_WITHIN_MS,
  );
  return [...targets, ['public endpoint', { host: outside, port: endpoint.port, within: () => [] }]];
}

// nsenter(1): another user enters networks through the user namespace that they belong to.
function enterNetworkOf(server: string): string[] {
  const isElsewhere = (pid: number): boolean => networkOf(pid) !== networkOf('self');
  const pid = processesWith(server).find(isElsewhere);
  if (pid === undefined) return [];
  const user = process.getuid?.() === 0 ? [] : ['--user', '--preserve-credentials'];
  return ['nsenter', '--target', String(pid), ...user, '--net', '--'];
}

const networkOf = (pid: number | 'self'): string => readlinkSync(`/proc/${pid}/ns/net`);

async function redisLoad(_: Stage, login: Login, { host, port, within }: Target, seconds: number): Promise<number> {
  const requests = String(seconds * REDIS_REQUESTS_PER_SECOND);
  const output = await run(within(), [
    ...['redis-benchmark', '-h', host, '-p', String(port), '--user', login.username, '-a', login.password],
    ...['--tls', '--insecure', '-c', String(CLIENTS), '-n', requests, '-t', 'get', '--csv'],
  ]);
  return Number(/"GET","([\d.]+)"/.exec(output)?.[1]);
}

async function postgresqlLoad(
  { directory }: Stage,
  login: Login,
  { host, port, within }: Target,
  seconds: number,
): Promise<number> {
  const script = path.join(directory, 'select.sql');
  writeFileSync(script, 'select 1;\n');
  const output = await run(
    within(),
    [
      ...['pgbench', '-n', '-f', script, '-c', String(CLIENTS), '-j', '2', '-T', String(seconds)],
      ...['-h', host, '-p', String(port), '-U', login.username, 'app'],
    ],
    { PGPASSWORD: login.password, PGSSLMODE: 'require' },
  );
  return Number(/^tps = ([\d.]+)/m.exec(output)?.[1]);
}

async function run(within: string[], command: string[], env: Record<string, string> = {}): Promise<string> {
  const [program = '', ...words] = [...within, ...command];
  return (await promisify(execFile)(program, words, { env: { ...process.env, ...env } })).stdout;
}
