// @ts-check
// The program that leads ports of the host into networks of projects: at 127.0.0.1 of the host it takes connections to
// servers there, for programs of the host. One for an installation; it outlives the control plane, which connects to
// its socket and writes all the ports as a line of JSON, { port: location }. It answers with those that it could not
// take (published_ports.ts). It ends when no port is left, or its directory is gone. It is copied into that directory.
'use strict';

const fs = require('node:fs');
const net = require('node:net');
const { connectInside } = require('./connect_inside.js');

/**
 * @typedef {{ address?: string, gate?: string }} Location
 * @typedef {{
 *   location: Location, clients: Set<net.Socket>, server: net.Server,
 *   opening?: Promise<void>, failure?: string,
 * }} Port
 */

const [, , directory = '', digest = ''] = process.argv;
const NOBODY = 65_534;
const LOOK_MS = 2000;
/** @type {Map<string, Port>} */
const ports = new Map();

process.chdir(directory);
const here = fs.openSync('.', 'r');
takePlace();
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(signal, () => {});
process.on('uncaughtException', (error) => console.error(error.message));
net.createServer(obey).listen(`control.${process.pid}`, () => {
  fs.renameSync(`control.${process.pid}`, 'control');
  dropRights();
});
setInterval(() => {
  if (fs.fstatSync(here).nlink === 0) process.exit();
  for (const [port, one] of ports) void listen(port, one);
}, LOOK_MS);

/** The note `process` names this one. Whoever finds one there ends. */
function takePlace() {
  const stat = fs.readFileSync('/proc/self/stat', 'utf8');
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const own = `process.${process.pid}`;
  fs.writeFileSync(own, [process.pid, start, boot, digest].join(' '));
  try {
    fs.linkSync(own, 'process');
  } catch {
    process.exitCode = 3;
  }
  fs.unlinkSync(own);
  if (process.exitCode === 3) process.exit();
}

/** It needs none any more. */
function dropRights() {
  if (process.getuid?.() !== 0) return;
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}

/** @param {net.Socket} client */
function obey(client) {
  let text = '';
  client.on('error', () => client.destroy());
  client.setEncoding('utf8');
  client.on('data', async (more) => {
    const lines = (text += more).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) {
      const failed = await publish(JSON.parse(line));
      client.write(`${JSON.stringify(failed)}\n`, () => void (ports.size || process.exit()));
    }
  });
}

/**
 * @param {Record<string, Location>} locations by port
 * @returns codes of errors by port
 */
async function publish(locations) {
  for (const [port, one] of ports) {
    if (locations[port]) continue;
    ports.delete(port);
    one.server.close();
    for (const client of one.clients) client.destroy();
  }
  for (const [port, location] of Object.entries(locations)) {
    const known = ports.get(port);
    if (known) known.location = location;
    else ports.set(port, { location, clients: new Set(), server: net.createServer() });
  }
  await Promise.all([...ports].map(([port, one]) => listen(port, one)));
  return Object.fromEntries([...ports].filter(([, one]) => one.failure).map(([port, one]) => [port, one.failure]));
}

/**
 * @param {string} port
 * @param {Port} one
 */
function listen(port, one) {
  return (one.opening ??= open(port, one).finally(() => (one.opening = undefined)));
}

/**
 * @param {string} port
 * @param {Port} one
 */
async function open(port, one) {
  if (one.server.listening) return;
  const options = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, keepAlive: true };
  const server = net.createServer(options, (client) => accept(Number(port), one, client));
  one.server = server;
  await new Promise((/** @type {(value: void) => void} */ done) => {
    server.once('error', (/** @type {NodeJS.ErrnoException} */ error) => {
      one.failure = error.code;
      done();
    });
    server.listen(Number(port), '127.0.0.1', () => {
      one.failure = undefined;
      // Withdrawn in the meantime.
      if (ports.get(port) !== one) server.close();
      done();
    });
  });
}

/**
 * @param {number} port
 * @param {Port} one
 * @param {net.Socket} client
 */
function accept(port, { location: { address, gate }, clients }, client) {
  /** @type {net.Socket | null} */
  let inside = null;
  clients.add(client);
  client.on('error', () => client.resetAndDestroy());
  client.on('close', () => {
    clients.delete(client);
    inside?.destroy();
  });
  if (gate) return connectInside(gate, port, (found) => (found ? join(found) : void client.resetAndDestroy()));
  const dialed = net.connect({ host: address, port, allowHalfOpen: true, noDelay: true, keepAlive: true });
  inside = dialed;
  dialed.on('error', () => client.resetAndDestroy());
  dialed.on('connect', () => join(dialed));

  /** @param {net.Socket} found */
  function join(found) {
    inside = found;
    if (client.destroyed) return void found.destroy();
    found.on('error', () => client.resetAndDestroy());
    found.on('close', () => client.destroySoon());
    client.pipe(found).pipe(client);
    client.resume();
  }
}
