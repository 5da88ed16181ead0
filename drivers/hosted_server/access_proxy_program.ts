// The program of an access proxy (access_proxy.ts). Its first argument is a file of rules, which it reads again when it
// changes; the second is what handed_socket.ts needs. Addresses of the host come and go: they are looked for every ten
// seconds.
import { connectInsideProgram } from '../network/handed_socket';

export const accessProxyProgram = `'use strict';
const fs = require('node:fs'), net = require('node:net'), os = require('node:os');
const [, , file, koffi] = process.argv;
const listeners = new Map(), clients = new Map();
const YOUNG_MS = 11000, FREED_MS = 200;
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
  for (const client of clients.keys()) if (!may(client.remoteAddress)) client.destroy();
}
function listen() {
  // Not those that lead into networks of projects.
  const all = Object.entries(os.networkInterfaces()).filter(([name]) => !/^pl[0-9a-f]{6}/.test(name))
    .flatMap(([, addresses]) => addresses)
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
  const from = plain(client.remoteAddress);
  if (!may(from)) return client.destroy();
  const isFull = clients.size >= rules.connections;
  if (isFull && !displace(from)) return client.destroy();
  clients.set(client, { from, since: Date.now() });
  client.on('close', () => clients.delete(client));
  // The server needs a moment to see that the other one has gone.
  if (isFull) setTimeout(() => client.destroyed || open(client), FREED_MS);
  else open(client);
}
// The youngest of the address that has most: servers end a connection by themselves that shows no password in time.
function displace(from) {
  const counts = new Map(), now = Date.now();
  for (const one of clients.values()) counts.set(one.from, (counts.get(one.from) || 0) + 1);
  const most = Math.max(...counts.values());
  if (most <= (counts.get(from) || 0) + 1) return false;
  const young = [...clients].filter(([client, one]) =>
    counts.get(one.from) === most && (now - one.since < YOUNG_MS || client.bytesRead === 0));
  const last = young.pop();
  if (last) last[0].destroy();
  return last !== undefined;
}
function open(client) {
  const { address, gate } = rules.location;
  if (gate) return connectInside(gate, rules.port, (server) => (server ? join(client, server) : client.destroy()));
  join(client, net.connect({ host: address, port: rules.port, noDelay: true, keepAlive: true }));
}
function join(client, server) {
  if (client.destroyed) return server.destroy();
  client.on('close', () => server.destroy());
  server.on('error', () => client.destroy());
  server.on('end', () => server.end());
  server.on('close', () => client.destroySoon());
  server.pipe(client);
  if (rules.tlsRequiredIn === 'mysql') client.on('data', readFirstPacket);
  else client.pipe(server);
  client.resume();
  // A MySQL client that wants TLS says so in its first packet, CLIENT_SSL in the second byte of its capabilities, and
  // the server takes nothing but TLS from then on.
  let head = Buffer.alloc(0);
  function readFirstPacket(bytes) {
    head = Buffer.concat([head, bytes]);
    if (head.length < 6) return;
    client.off('data', readFirstPacket);
    if (!(head[5] & 8)) {
      server.unpipe(client);
      return client.end(insecureTransport(head[3] + 1));
    }
    server.write(head);
    client.pipe(server);
  }
}
// ERR_Packet: ER_SECURE_TRANSPORT_REQUIRED, as the server itself would say it.
function insecureTransport(sequence) {
  const text = '#08004Connections to this address must use TLS.';
  const packet = Buffer.alloc(7 + text.length);
  packet.writeUIntLE(packet.length - 4, 0, 3);
  packet[3] = sequence;
  packet[4] = 255;
  packet.writeUInt16LE(3159, 5);
  packet.write(text, 7, 'latin1');
  return packet;
}
read();
if (rules === undefined) process.exit(1);
listen();
fs.watchFile(file, { interval: 500 }, () => { read(); listen(); });
setInterval(listen, 10000);
process.on('SIGTERM', () => process.exit(0));
${connectInsideProgram}`;
