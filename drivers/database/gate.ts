// Public endpoints: the servers listen on the loopback interface only. Where a database has allowed sources, a small
// program takes its port on the other addresses of the host, and lets connections from these networks through, as they
// are: TLS ends in the server. It is a unit of its own, `<id>.gate`, so it outlives the control plane as the server does.
// New sources are read within a second, without a restart; who is no longer allowed is disconnected.
import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import ipaddr from 'ipaddr.js';
import type { ServerSpec } from '../database';
import { DriverError } from '../driver';
import type { DriverContext } from '../driver';
import { giveFile, ownerOf, readNote, removeNote, writeNote, type Estate, type Home } from './home';

/** `publicAddresses`: of this host, on which public endpoints are reached; null = all that are not of the loopback interface. */
export interface GateEstate extends Estate {
  publicAddresses: string[] | null;
}

interface Rules {
  port: number;
  addresses: string[] | null;
  sources: string[];
  connections: number;
}

const fileName = 'gate.json';
const limits = { memory_mb: 128, cpus: 1, processes: 64, time_ms: null, output_bytes: 1 << 20, disk_mb: null };

/** What differs, for the operator; null = as wanted. Looks only. */
export async function gateDiffers(estate: GateEstate, home: Home, spec: ServerSpec): Promise<'gate' | null> {
  const wanted = isWanted(spec);
  if (wanted !== (await isRunning(estate, spec.id))) return 'gate';
  return !wanted || (await readNote<string>(home, 'gate')) === digestOf(estate, spec) ? null : 'gate';
}

/** Starts, tells or stops the program. */
export async function bringGate(estate: GateEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  if ((await gateDiffers(estate, home, spec)) === null) return;
  if (!isWanted(spec)) return stopGate(estate, spec.id, ctx);
  await removeNote(home, 'gate');
  await giveFile(path.join(home.conf, fileName), JSON.stringify(rulesOf(estate, spec)), await ownerOf(home));
  if (!(await isRunning(estate, spec.id))) await startGate(estate, home, spec, ctx);
  await writeNote(home, 'gate', digestOf(estate, spec));
}

export async function stopGate(estate: Estate, id: string, ctx: DriverContext): Promise<void> {
  await estate.runtime.destroy(unitOf(id), ctx);
}

async function startGate(estate: GateEstate, home: Home, spec: ServerSpec, ctx: DriverContext): Promise<void> {
  const directory = path.join(home.path, 'gate');
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await giveFile(path.join(directory, 'gate.js'), program, await ownerOf(home));
  await estate.runtime.destroy(unitOf(spec.id), ctx);
  const node = process.execPath;
  await estate.runtime.start(
    {
      id: unitOf(spec.id),
      kind: 'service',
      directory,
      root_directory: '.',
      command: `exec ${quoted(node)} --max-old-space-size=48 gate.js ${quoted(path.join(home.conf, fileName))}`,
      mounts: [{ source: home.conf, target: home.conf }],
      env: {},
      tenant: spec.tenant,
      limits,
      readable: node.startsWith('/usr/') ? [] : [path.dirname(path.dirname(node))],
    },
    ctx,
  );
}

async function isRunning(estate: Estate, id: string): Promise<boolean> {
  const handle = await estate.runtime.find(unitOf(id));
  return handle !== null && (await estate.runtime.inspect(handle)).state === 'running';
}

function isWanted(spec: ServerSpec): boolean {
  return spec.running && spec.allowed_sources.length > 0;
}

function rulesOf(estate: GateEstate, spec: ServerSpec): Rules {
  const wrong = spec.allowed_sources.find((source) => !ipaddr.isValidCIDR(source));
  if (wrong !== undefined) throw new DriverError('invalid', `${JSON.stringify(wrong)} is no network.`);
  return {
    port: spec.port,
    addresses: estate.publicAddresses,
    sources: spec.allowed_sources,
    connections: spec.size.max_connections,
  };
}

function digestOf(estate: GateEstate, spec: ServerSpec): string {
  return createHash('sha256')
    .update(JSON.stringify([rulesOf(estate, spec), program]))
    .digest('hex');
}

function unitOf(id: string): string {
  return `${id}.gate`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// Addresses of the host come and go: they are looked for every ten seconds.
const program = `'use strict';
const fs = require('node:fs'), net = require('node:net'), os = require('node:os');
const file = process.argv[2];
const doors = new Map(), guests = new Set();
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
  for (const guest of guests) if (!may(guest.remoteAddress)) guest.destroy();
}
function listen() {
  const all = Object.values(os.networkInterfaces()).flat().filter((one) => !one.internal && !one.address.startsWith('fe80:')).map((one) => one.address);
  const wanted = rules.addresses || all;
  for (const [address, door] of doors) if (!wanted.includes(address)) { door.close(); doors.delete(address); }
  for (const address of wanted) {
    if (doors.has(address)) continue;
    const door = net.createServer({ pauseOnConnect: true, noDelay: true, keepAlive: true }, enter);
    doors.set(address, door);
    door.on('error', (error) => { console.error(error.message); doors.delete(address); });
    door.listen({ host: address, port: rules.port });
  }
}
function enter(guest) {
  guest.on('error', () => guest.destroy());
  if (!may(guest.remoteAddress) || guests.size >= rules.connections) return guest.destroy();
  guests.add(guest);
  const server = net.connect({ host: '127.0.0.1', port: rules.port, noDelay: true, keepAlive: true });
  guest.on('close', () => { guests.delete(guest); server.destroy(); });
  server.on('error', () => guest.destroy());
  server.on('close', () => guest.destroySoon());
  server.pipe(guest);
  guest.pipe(server);
  guest.resume();
}
read();
if (rules === undefined) process.exit(1);
listen();
fs.watchFile(file, { interval: 500 }, () => { read(); listen(); });
setInterval(listen, 10000);
process.on('SIGTERM', () => process.exit(0));
`;
