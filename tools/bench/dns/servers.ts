// The servers of bench:dns, each in a separate process with the same zones.
import { execFile, execFileSync, fork, spawn, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { SigningKey } from '../../../core/protocols/dnssec';
import { driverContext } from '../../../core/driver';
import type { ZoneRecord, ZoneSpec } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserverOptions } from '../../../engines/dns/driver';
import { openZoneStore } from '../../../engines/dns/store';
import { openPowerdns } from '../../../drivers/powerdns/driver';

export const run = promisify(execFile);

export const NAMES = 10_000;
export const ZONES = 100;
const SCHEMA = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql';
const sealer = { prefix: '', seal: (text: string) => text, open: (text: string) => text };
const noAddresses = async (): Promise<string[]> => [];

export interface Running {
  port: number;
  pid: number;
  stop(): void;
}

export function newKey(role: SigningKey['role']): SigningKey {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
}

export function zone(number: number, count: number, keys: SigningKey[] = []): ZoneSpec {
  const record = (index: number): ZoneRecord => ({
    ...{ type: 'A', name: `host${index}`, value: `192.0.2.${index % 256}` },
    ttl: null,
  });
  return {
    ...{ name: `zone${number}.example.com`, serial: 1, default_ttl: 300, keys },
    name_servers: ['ns1.example.net', 'ns2.example.net'],
    soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
    records: Array.from({ length: count }, (_, index) => record(index)),
  };
}

export const idOf = (spec: ZoneSpec): string => `dnz_${spec.name.split('.')[0]}`;
const zones = (keys: SigningKey[]): ZoneSpec[] =>
  Array.from({ length: ZONES }, (_, number) => zone(number, NAMES / ZONES, keys));

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export function embeddedOptions(directory: string, port: number): EmbeddedNameserverOptions {
  return {
    ...{ directory, addresses: ['127.0.0.1'], ports: [port], responsesPerSecond: 1_000_000, own: [] },
    ...{ sealer, questions: { a: noAddresses, aaaa: noAddresses } },
  };
}

/** `main.js serve`: the server alone. */
export async function serve(directory: string, port: number): Promise<void> {
  await openEmbeddedNameserver(embeddedOptions(directory, port));
}

export async function startEmbedded(directory: string, keys: SigningKey[]): Promise<Running> {
  const port = await freePort();
  const store = await openZoneStore(directory, sealer);
  for (const spec of zones(keys)) await store.save(idOf(spec), spec);
  const child = fork(require.resolve('./main'), ['serve', directory, String(port)], { stdio: 'ignore' });
  await answers(port);
  return { port, pid: child.pid as number, stop: () => void child.kill('SIGKILL') };
}

export async function startPowerdns(directory: string, keys: SigningKey[], more: string[]): Promise<Running> {
  const [port, api] = [await freePort(), await freePort()];
  mkdirSync(directory, { recursive: true });
  const database = path.join(directory, 'pdns.sqlite3');
  execFileSync('sqlite3', [database, `.read ${SCHEMA}`]);
  const lines = [
    ...['launch=gsqlite3', `gsqlite3-database=${database}`, 'gsqlite3-dnssec=yes', 'local-address=127.0.0.1'],
    ...[`local-port=${port}`, 'api=yes', 'api-key=bench', 'webserver=yes', 'webserver-address=127.0.0.1'],
    ...[`webserver-port=${api}`, 'guardian=no', `socket-dir=${directory}`, 'security-poll-suffix='],
    ...['receiver-threads=1', 'gsqlite3-pragma-synchronous=0', ...more],
  ];
  writeFileSync(path.join(directory, 'pdns.conf'), `${lines.join('\n')}\n`);
  const child: ChildProcess = spawn('/usr/sbin/pdns_server', [`--config-dir=${directory}`], { stdio: 'ignore' });
  const driver = openPowerdns({ url: `http://127.0.0.1:${api}`, key: 'bench' });
  for (let turn = 0; turn < 100 && !(await driver.fingerprint(driverContext(1_000))).healthy; turn += 1)
    await sleep(50);
  for (const spec of zones(keys))
    await driver.ensure({ id: idOf(spec), spec }, { state: 'absent' }, driverContext(60_000));
  await answers(port);
  return { port, pid: child.pid as number, stop: () => void child.kill('SIGKILL') };
}

export async function answers(port: number, name = 'host0.zone0.example.com'): Promise<void> {
  for (let turn = 0; turn < 400; turn += 1) {
    const args = ['@127.0.0.1', '-p', String(port), '+short', '+tries=1', '+time=1', name, 'A'];
    const { stdout } = await run('dig', args).catch(() => ({ stdout: '' }));
    if (stdout.includes('192.0.2.0')) return;
    await sleep(50);
  }
  throw new Error('no answer');
}
