// The embedded name server beside PowerDNS on the same machine, the same names and the same clients (dnsperf):
// questions a second, as ratios. Then many zones in one process: memory, start, and the cost of a change.
//   npm run bench:dns [zones]
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { promisify } from 'node:util';
import type { SigningKey } from '../core/dnssec';
import { driverContext } from '../drivers/driver';
import type { NameserverDriver, ZoneRecord, ZoneSpec } from '../drivers/nameserver';
import { openEmbeddedNameserver } from '../drivers/nameserver/embedded/driver';
import { openPowerdns } from '../drivers/nameserver/powerdns/driver';

const run = promisify(execFile);

const NAMES = 10_000;
const ZONES = 100;
const SECONDS = 5;
const RECORDS_EACH = 20;
const MANY_ZONES = Number(process.argv[2] ?? 100_000);
const SCHEMA = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql';
const nobody = async (): Promise<string[]> => [];

const record = (type: ZoneRecord['type'], name: string, value: string): ZoneRecord => ({
  type,
  name,
  value,
  ttl: null,
});
const newKey = (role: SigningKey['role']): SigningKey => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
};

function zone(number: number, count: number, keys: SigningKey[] = []): ZoneSpec {
  return {
    ...{ name: `zone${number}.example.com`, serial: 1, default_ttl: 300, keys },
    name_servers: ['ns1.example.net', 'ns2.example.net'],
    soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
    records: Array.from({ length: count }, (_, index) => record('A', `host${index}`, `192.0.2.${index % 256}`)),
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface Running {
  port: number;
  stop(): void;
}

function embeddedOptions(directory: string, port: number): Parameters<typeof openEmbeddedNameserver>[0] {
  return {
    ...{ directory, addresses: ['127.0.0.1'], ports: [port], responsesPerSecond: 1_000_000, own: [] },
    sealer: { seal: (text) => text, open: (text) => text },
    questions: { a: nobody, aaaa: nobody },
  };
}

/** In a process of its own, as the client is. */
async function startEmbedded(directory: string, keys: SigningKey[]): Promise<Running> {
  const port = await freePort();
  const filling = await openEmbeddedNameserver(embeddedOptions(directory, port));
  for (const spec of zones(keys)) await fill(filling, spec);
  await filling.close();
  const child = spawn(process.execPath, [...process.execArgv, __filename, 'serve', directory, String(port)], {
    stdio: 'ignore',
  });
  await answers(port);
  return { port, stop: () => void child.kill('SIGKILL') };
}

const zones = (keys: SigningKey[]): ZoneSpec[] =>
  Array.from({ length: ZONES }, (_, number) => zone(number, NAMES / ZONES, keys));
const fill = (driver: NameserverDriver, spec: ZoneSpec): Promise<unknown> =>
  driver.ensure({ id: `dnz_${spec.name.split('.')[0]}`, spec }, { state: 'absent' }, driverContext(60_000));

async function startPowerdns(directory: string, keys: SigningKey[], more: string[]): Promise<Running> {
  const [port, api] = [await freePort(), await freePort()];
  mkdirSync(directory, { recursive: true });
  const database = path.join(directory, 'pdns.sqlite3');
  execFileSync('sqlite3', [database, `.read ${SCHEMA}`]);
  const lines = [
    ...['launch=gsqlite3', `gsqlite3-database=${database}`, 'gsqlite3-dnssec=yes', 'local-address=127.0.0.1'],
    ...[`local-port=${port}`, 'api=yes', 'api-key=bench', 'webserver=yes', 'webserver-address=127.0.0.1'],
    ...[
      `webserver-port=${api}`,
      'guardian=no',
      `socket-dir=${directory}`,
      'security-poll-suffix=',
      'receiver-threads=1',
    ],
    ...['gsqlite3-pragma-synchronous=0', ...more],
  ];
  writeFileSync(path.join(directory, 'pdns.conf'), `${lines.join('\n')}\n`);
  const child: ChildProcess = spawn('/usr/sbin/pdns_server', [`--config-dir=${directory}`], { stdio: 'ignore' });
  const driver = openPowerdns({ url: `http://127.0.0.1:${api}`, key: 'bench' });
  for (let turn = 0; turn < 100 && !(await driver.fingerprint(driverContext(1_000))).healthy; turn += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
  for (const spec of zones(keys)) await fill(driver, spec);
  await answers(port);
  return { port, stop: () => void child.kill('SIGKILL') };
}

async function answers(port: number): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) {
    const args = ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=1', 'host0.zone0.example.com', 'A'];
    const { stdout } = await run('dig', args).catch(() => ({ stdout: '' }));
    if (stdout.includes('192.0.2.0')) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('no answer');
}

interface Measured {
  perSecond: number;
  /** Milliseconds. */
  average: number;
}

async function measure({ port }: Running, questions: string, more: string[] = []): Promise<Measured> {
  const args = [
    '-s',
    '127.0.0.1',
    '-p',
    String(port),
    '-d',
    questions,
    '-l',
    String(SECONDS),
    '-c',
    '8',
    '-Q',
    '1000000',
  ];
  const { stdout } = await run('dnsperf', [...args, ...more], { maxBuffer: 1 << 26 });
  const perSecond = Number(/Queries per second:\s+([\d.]+)/.exec(stdout)?.[1]);
  return { perSecond, average: Number(/Average Latency \(s\):\s+([\d.]+)/.exec(stdout)?.[1]) * 1000 };
}

function show(what: string, ours: Measured, theirs: Measured, wanted: number): void {
  const ratio = ours.perSecond / theirs.perSecond;
  const numbers = `${Math.round(ours.perSecond)} : ${Math.round(theirs.perSecond)} questions/s`;
  const latency = `average ${ours.average.toFixed(2)} : ${theirs.average.toFixed(2)} ms`;
  process.stdout.write(`${what.padEnd(34)} ${numbers}, ${latency}, ratio ${ratio.toFixed(2)} (wanted ${wanted})\n`);
}

async function compare(directory: string): Promise<void> {
  const [known, unknown] = [path.join(directory, 'known'), path.join(directory, 'unknown')];
  const names = Array.from({ length: NAMES }, (_, index) => `host${index % (NAMES / ZONES)}.zone${index % ZONES}`);
  writeFileSync(known, names.map((name) => `${name}.example.com A\n`).join(''));
  const fresh = Array.from({ length: 500_000 }, (_, index) => `no${index}.zone${index % ZONES}.example.com A\n`);
  writeFileSync(unknown, fresh.join(''));
  for (const [kind, keys, flags] of [
    ['plain', [], []],
    ['signed', [newKey('ksk'), newKey('zsk')], ['-D']],
  ] as [string, SigningKey[], string[]][]) {
    const ours = await startEmbedded(path.join(directory, `embedded-${kind}`), keys);
    const theirs = await startPowerdns(path.join(directory, `powerdns-${kind}`), keys, []);
    for (const one of [ours, theirs]) await measure(one, known, flags);
    show(
      `${kind}, known names, caches warm`,
      await measure(ours, known, flags),
      await measure(theirs, known, flags),
      kind === 'plain' ? 0.9 : 0.8,
    );
    show(`${kind}, names never seen`, await measure(ours, unknown, flags), await measure(theirs, unknown, flags), 0.8);
    theirs.stop();
    if (kind === 'plain') {
      const off = ['cache-ttl=0', 'query-cache-ttl=0', 'negquery-cache-ttl=0'];
      const bare = await startPowerdns(path.join(directory, 'powerdns-bare'), keys, off);
      show('plain, PowerDNS without caches', await measure(ours, known), await measure(bare, known), 2);
      bare.stop();
    }
    ours.stop();
  }
}

/** Many zones in this process: what they take, and what a change costs. */
async function many(directory: string): Promise<void> {
  const memory = (): number => Math.round(process.memoryUsage().rss / 2 ** 20);
  const port = await freePort();
  const before = memory();
  const server = await openEmbeddedNameserver(embeddedOptions(directory, port));
  const change = async (): Promise<number> => {
    const times: number[] = [];
    for (let turn = 0; turn < 20; turn += 1) {
      const spec = { ...zone(3, RECORDS_EACH), serial: 2 + turn };
      const begin = performance.now();
      await server.ensure({ id: 'dnz_zone3', spec }, { state: 'absent' }, driverContext(60_000));
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b)[10] as number;
  };
  for (let number = 0; number < 10; number += 1) await fill(server, zone(number, RECORDS_EACH));
  const few = await change();
  for (let number = 10; number < MANY_ZONES; number += 100)
    await Promise.all(Array.from({ length: 100 }, (_, more) => fill(server, zone(number + more, RECORDS_EACH))));
  const all = await change();
  const taken = memory() - before;
  await server.close();
  const begin = performance.now();
  const again = await openEmbeddedNameserver(embeddedOptions(directory, port));
  const start = (performance.now() - begin) / 1000;
  await again.close();
  const size = `${MANY_ZONES} zones of ${RECORDS_EACH} records`;
  process.stdout.write(`${size}: ${taken} MB, start ${start.toFixed(1)} s; `);
  process.stdout.write(
    `a change ${few.toFixed(1)} ms with 10 zones, ${all.toFixed(1)} ms with all (median, on disk)\n`,
  );
}

async function main(): Promise<void> {
  if (process.argv[2] === 'serve') {
    await openEmbeddedNameserver(embeddedOptions(process.argv[3] as string, Number(process.argv[4])));
    return;
  }
  const directory = mkdtempSync(path.join(tmpdir(), 'bench-dns-'));
  try {
    process.stdout.write(
      `${NAMES} names in ${ZONES} zones, one process each, dnsperf with 8 clients for ${SECONDS} s\n`,
    );
    await compare(directory);
    await many(path.join(directory, 'many'));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

void main();
