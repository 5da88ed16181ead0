// The program that is a network of an ordinary user: the namespace lives as long as it does, and it takes connections
// to ports of the network. A caller connects to a socket of it and writes the port and a line end; it answers + or -.
// At the socket `hand`, which is there where koffi is installed, the connected socket itself follows (SCM_RIGHTS), and
// the gate has no more to do with it. At the socket `gate`, it passes the bytes on both ways. Neither may change, since
// a gate outlives the version of the platform that started it. At ports of services of the host, which are its further
// arguments, it takes connections of the network and passes them to sockets of the host (host_ports.ts). It ends when
// its directory goes.
export function gateProgram(koffi: string | null): string {
  return PROGRAM.replace('KOFFI', () => JSON.stringify(koffi));
}

// struct msghdr, struct iovec, struct cmsghdr with one descriptor, a byte: as in descriptors.ts.
const PROGRAM = `'use strict';
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
process.chdir(directory);
const give = openHandOver(KOFFI);
if (give) listen('hand', handOver, () => listen('gate', relay));
else {
  fs.rmSync('hand', { force: true });
  listen('gate', relay);
}
function listen(name, serve, next) {
  const own = name + '.' + process.pid;
  const server = net.createServer({ allowHalfOpen: true }, (client) => accept(client, serve));
  server.listen({ path: own, backlog: 4096 }, () => {
    fs.renameSync(own, name);
    if (next) next();
  });
}
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
function accept(client, serve) {
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
    const port = Number(head.toString('latin1', 0, end));
    if (!(port > 0 && port < 65536)) return client.destroy();
    serve(client, port, head.subarray(end + 1), onEnd);
  }
}
function openHandOver(file) {
  if (file === null) return null;
  try {
    const koffi = require(file), libc = koffi.load(null);
    const send = libc.func('int64_t send(int, void*, uint64_t, int)');
    const sendmsg = libc.func('int64_t sendmsg(int, void*, int)');
    const memory = koffi.alloc('uint8_t', 104), base = koffi.address(memory);
    const view = new DataView(koffi.view(memory, 104)), put = (at, value) => view.setBigUint64(at, BigInt(value), true);
    for (let at = 0; at < 104; at += 8) put(at, 0);
    put(16, base + 56n), put(24, 1), put(32, base + 72n), put(40, 24);
    put(56, base + 96n), put(64, 1);
    put(72, 20), view.setInt32(80, 1, true), view.setInt32(84, 1, true);
    const answer = Buffer.from('+'), flags = 0x4000 | 0x40;
    return (to, descriptor) => {
      view.setInt32(88, descriptor, true);
      return send(to, answer, 1, flags) === 1 && sendmsg(to, base, flags) === 1;
    };
  } catch (error) {
    return console.error(error.message), null;
  }
}
function handOver(client, port) {
  const inside = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  // What a server says first is not for the gate to read.
  inside.pause();
  client.on('close', () => inside.destroy());
  inside.on('error', () => client.end('-'));
  inside.on('connect', () => {
    if (!client.destroyed) give(client._handle.fd, inside._handle.fd);
    client.destroy();
  });
}
function relay(client, port, rest, onEnd) {
  client.off('end', onEnd);
  client.pause();
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
