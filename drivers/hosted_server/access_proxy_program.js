// @ts-check
// The program of an access proxy (access_proxy.ts), which is copied into the directory of the server. Its argument is a
// file of rules, which it reads again when it changes. Addresses of the host come and go: they are looked for every ten
// seconds.
'use strict';

const fs = require('node:fs');
const net = require('node:net');
const os = require('node:os');
const { connectInside } = require('./connect_inside.js');

/**
 * @typedef {{
 *   port: number, location: { address?: string, gate?: string }, addresses: string[] | null, sources: string[],
 *   connections: number, tlsRequiredIn: 'mysql' | null,
 * }} Rules
 */

const [, , file = ''] = process.argv;
const YOUNG_MS = 11_000;
const FREED_MS = 200;
const ADDRESSES_MS = 10_000;
const RULES_MS = 500;
/** Of interfaces that lead into networks of projects. */
const NETWORK_INTERFACE = /^pl[0-9a-f]{6}/;
/** CLIENT_SSL, in the second byte of the capabilities. */
const CLIENT_SSL = 8;
const SECURE_TRANSPORT_REQUIRED = 3159;

/** @type {Map<string, net.Server>} */
const listeners = new Map();
/** @type {Map<net.Socket, { from: string, since: number }>} */
const clients = new Map();
let rules = readRules();
if (rules === null) process.exit(1);
let allowed = allowedSources();
listen();
fs.watchFile(file, { interval: RULES_MS }, () => {
  apply();
  listen();
});
setInterval(listen, ADDRESSES_MS);
process.on('SIGTERM', () => process.exit(0));

/** @returns {Rules | null} */
function readRules() {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return null;
  }
}

function apply() {
  const read = readRules();
  if (read === null) return;
  rules = read;
  allowed = allowedSources();
  for (const client of clients.keys()) if (!isAllowed(client.remoteAddress)) client.destroy();
}

function current() {
  return /** @type {Rules} */ (rules);
}

function allowedSources() {
  const list = new net.BlockList();
  for (const source of current().sources) {
    const [address = '', bits] = source.split('/');
    list.addSubnet(address, Number(bits), familyOf(address));
  }
  return list;
}

/** @param {string} address */
function familyOf(address) {
  return net.isIPv6(address) ? 'ipv6' : 'ipv4';
}

/** @param {string | undefined} address an IPv4 address may be written as one of IPv6 */
function plain(address) {
  return String(address).replace(/^::ffff:(?=\d+\.)/, '');
}

/** @param {string | undefined} address */
function isAllowed(address) {
  return allowed.check(plain(address), familyOf(plain(address)));
}

function ownAddresses() {
  return Object.entries(os.networkInterfaces())
    .filter(([name]) => !NETWORK_INTERFACE.test(name))
    .flatMap(([, addresses]) => addresses ?? [])
    .filter((one) => !one.internal && !one.address.startsWith('fe80:'))
    .map((one) => one.address);
}

function listen() {
  const desired = current().addresses ?? ownAddresses();
  for (const [address, listener] of listeners) {
    if (desired.includes(address)) continue;
    listener.close();
    listeners.delete(address);
  }
  for (const address of desired) {
    if (listeners.has(address)) continue;
    const listener = net.createServer({ pauseOnConnect: true, noDelay: true, keepAlive: true }, accept);
    listeners.set(address, listener);
    listener.on('error', (error) => {
      console.error(error.message);
      listeners.delete(address);
    });
    listener.listen({ host: address, port: current().port });
  }
}

/** @param {net.Socket} client */
function accept(client) {
  client.on('error', () => client.destroy());
  const from = plain(client.remoteAddress);
  if (!isAllowed(from)) return void client.destroy();
  const isFull = clients.size >= current().connections;
  if (isFull && !displace(from)) return void client.destroy();
  clients.set(client, { from, since: Date.now() });
  client.on('close', () => clients.delete(client));
  // The server needs a moment to see that the other one has gone.
  if (isFull) setTimeout(() => client.destroyed || open(client), FREED_MS);
  else open(client);
}

/**
 * Ends the youngest connection of the address that has most: servers end a connection by themselves that shows no
 * password in time.
 * @param {string} from who needs the place
 */
function displace(from) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const now = Date.now();
  for (const one of clients.values()) counts.set(one.from, (counts.get(one.from) ?? 0) + 1);
  const most = Math.max(...counts.values());
  if (most <= (counts.get(from) ?? 0) + 1) return false;
  const young = [...clients].filter(
    ([client, one]) => counts.get(one.from) === most && (now - one.since < YOUNG_MS || client.bytesRead === 0),
  );
  const last = young.pop();
  if (last) last[0].destroy();
  return last !== undefined;
}

/** @param {net.Socket} client */
function open(client) {
  const { location, port } = current();
  const { address, gate } = location;
  if (gate) return connectInside(gate, port, (server) => (server ? join(client, server) : void client.destroy()));
  join(client, net.connect({ host: address, port, noDelay: true, keepAlive: true }));
}

/**
 * @param {net.Socket} client
 * @param {net.Socket} server
 */
function join(client, server) {
  if (client.destroyed) return void server.destroy();
  client.on('close', () => server.destroy());
  server.on('error', () => client.destroy());
  server.on('end', () => server.end());
  server.on('close', () => client.destroySoon());
  server.pipe(client);
  if (current().tlsRequiredIn === 'mysql') requireTls(client, server);
  else client.pipe(server);
  client.resume();
}

/**
 * A MySQL client that wants TLS says so in its first packet, and the server takes nothing but TLS from then on.
 * @param {net.Socket} client
 * @param {net.Socket} server
 */
function requireTls(client, server) {
  let head = Buffer.alloc(0);
  client.on('data', readFirstPacket);
  /** @param {Buffer} bytes */
  function readFirstPacket(bytes) {
    head = Buffer.concat([head, bytes]);
    if (head.length < 6) return;
    client.off('data', readFirstPacket);
    if (!(head.readUInt8(5) & CLIENT_SSL)) {
      server.unpipe(client);
      return void client.end(insecureTransport(head.readUInt8(3) + 1));
    }
    server.write(head);
    client.pipe(server);
  }
}

/**
 * ERR_Packet: ER_SECURE_TRANSPORT_REQUIRED, as the server itself would say it.
 * @param {number} sequence
 */
function insecureTransport(sequence) {
  const text = '#08004Connections to this address must use TLS.';
  const packet = Buffer.alloc(7 + text.length);
  packet.writeUIntLE(packet.length - 4, 0, 3);
  packet[3] = sequence;
  packet[4] = 255;
  packet.writeUInt16LE(SECURE_TRANSPORT_REQUIRED, 5);
  packet.write(text, 7, 'latin1');
  return packet;
}
