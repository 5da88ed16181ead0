// The program that is a network of an ordinary user: the namespace lives as long as it does, and it takes connections
// to ports of the network. A caller connects to its socket and writes the port and a line end; it answers + or -, and
// passes the bytes on both ways. At ports of services of the host, which are its further arguments, it takes
// connections of the network and passes them to sockets of the host (host_ports.ts). It ends when its directory goes.
export const gateProgram = `'use strict';
const fs = require('node:fs'), net = require('node:net'), path = require('node:path');
const directory = process.argv[2], own = path.join(directory, 'holder.' + process.pid);
const stat = fs.readFileSync('/proc/self/stat', 'utf8');
const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
fs.writeFileSync(own, process.pid + ' ' + start + ' ' + boot);
try {
  fs.linkSync(own, path.join(directory, 'holder'));
} catch {
  process.exitCode = 3;
}
fs.unlinkSync(own);
if (process.exitCode === 3) process.exit();
const socket = path.join(directory, 'gate');
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(signal, () => {});
process.on('uncaughtException', (error) => console.error(error.message));
const server = net.createServer({ allowHalfOpen: true, noDelay: true }, accept);
process.chdir(directory);
server.listen('gate.' + process.pid, () => fs.renameSync('gate.' + process.pid, 'gate'));
for (const port of process.argv.slice(3)) {
  const service = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const outside = net.connect({ path: path.join('..', '.services', port), allowHalfOpen: true });
    client.pipe(outside).pipe(client);
    outside.on('error', () => client.resetAndDestroy());
    outside.on('close', () => client.destroy());
    client.on('error', () => outside.destroy());
    client.on('close', () => outside.destroy());
  });
  service.listen(Number(port), '127.0.0.1');
}
function accept(client) {
  let head = Buffer.alloc(0);
  client.on('error', () => client.destroy());
  client.on('end', onEnd);
  client.on('data', onData);
  function onEnd() { client.destroy(); }
  function onData(bytes) {
    head = head.length ? Buffer.concat([head, bytes]) : bytes;
    const end = head.indexOf(10);
    if (end < 0) return head.length > 8 ? client.destroy() : undefined;
    client.off('data', onData);
    client.off('end', onEnd);
    client.pause();
    open(client, Number(head.toString('latin1', 0, end)), head.subarray(end + 1));
  }
}
function open(client, port, rest) {
  if (!(port > 0 && port < 65536)) return client.destroy();
  const inside = net.connect({ host: '127.0.0.1', port, noDelay: true, allowHalfOpen: true });
  client.on('close', () => inside.destroy());
  inside.on('error', () => { inside.connecting || !inside.opened ? client.end('-') : client.destroy(); });
  inside.on('connect', () => {
    inside.opened = true;
    client.write('+');
    if (rest.length) inside.write(rest);
    client.pipe(inside);
    inside.pipe(client);
  });
  inside.on('close', (failed) => { if (failed && inside.opened) client.destroy(); });
}
function inode(file) {
  try { return fs.statSync(file).ino; } catch { return 0; }
}
setInterval(() => {
  if (inode(path.join(directory, 'holder')) !== 0) return;
  try {
    process.kill(Number(fs.readFileSync('pasta.pid', 'utf8')), 'SIGKILL');
  } catch {}
  process.exit();
}, 2000);
`;
