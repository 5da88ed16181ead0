// Public endpoints: the servers listen on the loopback interface only. Where a database has allowed sources, a small
// program takes its port on the other addresses of the host, and lets connections from these networks through, as they
// are: TLS ends in the server. It is a unit of its own, `<id>.proxy`, so it outlives the control plane as the server
// does. New sources are read within a second, without a restart; who is no longer allowed is disconnected.
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import ipaddr from 'ipaddr.js';
import type { HostedServerSpec } from '../hosted_server';
import { DriverError } from '../driver';
import { shellQuoted } from './driver';
import type { DriverContext } from '../driver';
import {
  writeFileFor,
  ownerOf,
  readNote,
  removeNote,
  writeNote,
  type EngineContext,
  type ServerDirectory,
} from './server_directory';

/**
 * `publicAddresses`: of this host, on which public endpoints are reached; null = all that are not of the loopback
 * interface.
 */
export interface ProxyContext extends EngineContext {
  publicAddresses: string[] | null;
}

/** What it must know of the server. */
export type ProxiedServer = HostedServerSpec & { id: string; size: { max_connections: number } };

interface Rules {
  port: number;
  addresses: string[] | null;
  sources: string[];
  connections: number;
}

const noteName = 'access_proxy';
const fileName = 'access_proxy.json';
const limits = { memory_mb: 128, cpus: 1, processes: 64, time_ms: null, output_bytes: 1 << 20, disk_mb: null };

/** What differs, for the operator; null = nothing. Changes nothing. */
export async function proxyDifference(
  engine: ProxyContext,
  serverDirectory: ServerDirectory,
  spec: ProxiedServer,
): Promise<'access proxy' | null> {
  const desired = isDesired(spec);
  if (desired !== (await isRunning(engine, spec.id))) return 'access proxy';
  return !desired || (await readNote<string>(serverDirectory, noteName)) === digestOf(engine, spec)
    ? null
    : 'access proxy';
}

/** Starts, tells or stops the program. */
export async function ensureProxy(
  engine: ProxyContext,
  serverDirectory: ServerDirectory,
  spec: ProxiedServer,
  ctx: DriverContext,
): Promise<void> {
  if ((await proxyDifference(engine, serverDirectory, spec)) === null) return;
  if (!isDesired(spec)) return stopProxy(engine, spec.id, ctx);
  await removeNote(serverDirectory, noteName);
  await writeFileFor(
    path.join(serverDirectory.conf, fileName),
    JSON.stringify(rulesOf(engine, spec)),
    await ownerOf(serverDirectory),
  );
  if (!(await isRunning(engine, spec.id))) await startProxy(engine, serverDirectory, spec, ctx);
  await writeNote(serverDirectory, noteName, digestOf(engine, spec));
}

export async function stopProxy(engine: EngineContext, id: string, ctx: DriverContext): Promise<void> {
  await engine.runtime.destroy(unitOf(id), ctx);
}

async function startProxy(
  engine: ProxyContext,
  serverDirectory: ServerDirectory,
  spec: ProxiedServer,
  ctx: DriverContext,
): Promise<void> {
  const directory = path.join(serverDirectory.path, 'proxy');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFileFor(path.join(directory, 'access_proxy.js'), program, await ownerOf(serverDirectory));
  await engine.runtime.destroy(unitOf(spec.id), ctx);
  const node = process.execPath;
  await engine.runtime.start(
    {
      id: unitOf(spec.id),
      kind: 'service',
      directory,
      root_directory: '.',
      command:
        `exec ${shellQuoted(node)} --max-old-space-size=48 access_proxy.js ` +
        `${shellQuoted(path.join(serverDirectory.conf, fileName))}`,
      mounts: [{ source: serverDirectory.conf, target: serverDirectory.conf }],
      env: {},
      tenant: spec.tenant,
      limits,
      readable: node.startsWith('/usr/') ? [] : [path.dirname(path.dirname(node))],
    },
    ctx,
  );
}

async function isRunning(engine: EngineContext, id: string): Promise<boolean> {
  const handle = await engine.runtime.find(unitOf(id));
  return handle !== null && (await engine.runtime.inspect(handle)).state === 'running';
}

function isDesired(spec: ProxiedServer): boolean {
  return spec.running && spec.allowed_sources.length > 0;
}

function rulesOf(engine: ProxyContext, spec: ProxiedServer): Rules {
  const wrong = spec.allowed_sources.find((source) => !ipaddr.isValidCIDR(source));
  if (wrong !== undefined)
    throw new DriverError('invalid', `The source ${JSON.stringify(wrong)} is not a network in CIDR notation.`);
  return {
    port: spec.port,
    addresses: engine.publicAddresses,
    sources: spec.allowed_sources,
    connections: spec.size.max_connections,
  };
}

function digestOf(engine: ProxyContext, spec: ProxiedServer): string {
  return createHash('sha256')
    .update(JSON.stringify([rulesOf(engine, spec), program]))
    .digest('hex');
}

function unitOf(id: string): string {
  return `${id}.proxy`;
}

// Addresses of the host come and go: they are looked for every ten seconds.
const program = `'use strict';
const fs = require('node:fs'), net = require('node:net'), os = require('node:os');
const file = process.argv[2];
const listeners = new Map(), clients = new Set();
let rules, allowed;
const familyOf = (address) => (net.isIPv6(address) ? 'ipv6' : 'ipv4');
const plain = (address) => String(address).replace(/^::ffff:(?=\\d+\\.)/, '');
const may = (address) => allowed.check(plain(address), familyOf(plain(address)));
function read() {
  try {
    rules = JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    return console.error(error.message);
  }
  allowed = new net.BlockList();
  for (const source of rules.sources) {
    const [address, bits] = source.split('/');
    allowed.addSubnet(address, Number(bits), familyOf(address));
  }
  for (const client of clients) if (!may(client.remoteAddress)) client.destroy();
}
function listen() {
  const all = Object.values(os.networkInterfaces()).flat()
    .filter((one) => !one.internal && !one.address.startsWith('fe80:')).map((one) => one.address);
  const desired = rules.addresses || all;
  for (const [address, listener] of listeners) {
    if (desired.includes(address)) continue;
    listener.close();
    listeners.delete(address);
  }
  for (const address of desired) {
    if (listeners.has(address)) continue;
    const listener = net.createServer({ pauseOnConnect: true, noDelay: true, keepAlive: true }, accept);
    listeners.set(address, listener);
    listener.on('error', (error) => { console.error(error.message); listeners.delete(address); });
    listener.listen({ host: address, port: rules.port });
  }
}
function accept(client) {
  client.on('error', () => client.destroy());
  if (!may(client.remoteAddress) || clients.size >= rules.connections) return client.destroy();
  clients.add(client);
  const server = net.connect({ host: '127.0.0.1', port: rules.port, noDelay: true, keepAlive: true });
  client.on('close', () => { clients.delete(client); server.destroy(); });
  server.on('error', () => client.destroy());
  server.on('close', () => client.destroySoon());
  server.pipe(client);
  client.pipe(server);
  client.resume();
}
read();
if (rules === undefined) process.exit(1);
listen();
fs.watchFile(file, { interval: 500 }, () => { read(); listen(); });
setInterval(listen, 10000);
process.on('SIGTERM', () => process.exit(0));
`;
