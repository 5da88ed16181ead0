// The program that leads ports of the host into networks of projects: at 127.0.0.1 of the host it takes connections to
// servers there, for programs of the host. One for an installation; it outlives the control plane, which connects to
// its socket and writes all the ports as a line of JSON, { port: location }. It answers with those that it could not
// take (published_ports.ts). It ends when no port is left, or its directory is gone.
import { connectInsideProgram } from './handed_socket';

export const publishedProgram = `'use strict';
const fs = require('node:fs'), net = require('node:net'), koffi = process.argv[4];
process.chdir(process.argv[2]);
const here = fs.openSync('.'), stat = fs.readFileSync('/proc/self/stat', 'utf8');
const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
const own = 'process.' + process.pid;
fs.writeFileSync(own, [process.pid, start, boot, process.argv[3]].join(' '));
try {
  fs.linkSync(own, 'process');
} catch {
  process.exitCode = 3;
}
fs.unlinkSync(own);
if (process.exitCode === 3) process.exit();
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(signal, () => {});
process.on('uncaughtException', (error) => console.error(error.message));
const ports = new Map();
const control = net.createServer(obey);
control.listen('control.' + process.pid, () => {
  fs.renameSync('control.' + process.pid, 'control');
  // It needs no right any more.
  if (process.getuid() === 0) {
    process.setgroups([]);
    process.setgid(65534);
    process.setuid(65534);
  }
});
function obey(client) {
  let text = '';
  client.on('error', () => client.destroy());
  client.setEncoding('utf8');
  client.on('data', async (more) => {
    const lines = (text += more).split('\\n');
    text = lines.pop();
    for (const line of lines) {
      const failed = await publish(JSON.parse(line));
      client.write(JSON.stringify(failed) + '\\n', () => ports.size || process.exit());
    }
  });
}
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
function listen(port, one) {
  return one.opening ??= open(port, one).finally(() => (one.opening = undefined));
}
async function open(port, one) {
  if (one.server.listening) return;
  const options = { allowHalfOpen: true, pauseOnConnect: true, noDelay: true, keepAlive: true };
  one.server = net.createServer(options, (client) => accept(Number(port), one, client));
  await new Promise((done) => {
    one.server.once('error', (error) => done((one.failure = error.code)));
    one.server.listen(Number(port), '127.0.0.1', () => {
      one.failure = undefined;
      // Withdrawn in the meantime.
      if (ports.get(port) !== one) one.server.close();
      done();
    });
  });
}
function accept(port, { location: { address, gate }, clients }, client) {
  let inside = null;
  clients.add(client);
  client.on('error', () => client.resetAndDestroy());
  client.on('close', () => { clients.delete(client); inside?.destroy(); });
  if (gate) return connectInside(gate, port, (found) => (found ? join(found) : client.resetAndDestroy()));
  inside = net.connect({ host: address, port, allowHalfOpen: true, noDelay: true, keepAlive: true });
  inside.on('error', () => client.resetAndDestroy());
  inside.on('connect', () => join(inside));
  function join(found) {
    inside = found;
    if (client.destroyed) return inside.destroy();
    inside.on('error', () => client.resetAndDestroy());
    inside.on('close', () => client.destroySoon());
    client.pipe(inside).pipe(client);
    client.resume();
  }
}
setInterval(() => {
  if (fs.fstatSync(here).nlink === 0) process.exit();
  for (const [port, one] of ports) void listen(port, one);
}, 2000);
${connectInsideProgram}`;
