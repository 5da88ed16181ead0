// @ts-check
// The holder of the network of an ordinary user: the namespace lives as long as this process does, and it takes
// connections to ports of the network. A caller connects to the socket `gate` in its directory and writes the port and
// a line end; it answers + or -, and then passes the bytes on both ways. This may not change, since the process
// outlives the version of the platform that started it. At ports of services of the host, which are its further
// arguments, it takes connections of the network and passes them to sockets of the host (host_ports.ts). It ends when
// its directory goes. This file is copied into that directory and stands on its own.
'use strict';

const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');

const [, , directory = '', ...services] = process.argv;
const options = { allowHalfOpen: true };
const PORT_CHARACTERS_MAX = 8;
const LOOK_MS = 2000;

takePlace();
for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) process.on(signal, () => {});
process.on('uncaughtException', (error) => console.error(error.message));
process.chdir(directory);
listen();
for (const port of services) serveHost(port);
setInterval(endWithDirectory, LOOK_MS);

/** The note `holder` names this process. Whoever finds one there ends. */
function takePlace() {
  const own = path.join(directory, `holder.${process.pid}`);
  const stat = fs.readFileSync('/proc/self/stat', 'utf8');
  const start = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  const boot = fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  fs.writeFileSync(own, `${process.pid} ${start} ${boot}`);
  try {
    fs.linkSync(own, path.join(directory, 'holder'));
  } catch {
    process.exitCode = 3;
  }
  fs.unlinkSync(own);
  if (process.exitCode === 3) process.exit();
}

function listen() {
  const own = `gate.${process.pid}`;
  net.createServer(options, accept).listen({ path: own, backlog: 4096 }, () => fs.renameSync(own, 'gate'));
}

/** @param {string} port */
function serveHost(port) {
  const server = net.createServer({ ...options, noDelay: true }, (client) => {
    const outside = net.connect({ ...options, path: path.join('..', '.services', port) });
    client.pipe(outside).pipe(client);
    outside.on('error', () => client.resetAndDestroy());
    outside.on('close', () => client.destroy());
    client.on('error', () => outside.destroy());
    client.on('close', () => outside.destroy());
  });
  server.listen(Number(port), '127.0.0.1');
}

/** @param {net.Socket} client */
function accept(client) {
  let head = Buffer.alloc(0);
  const onEnd = () => client.destroy();
  client.on('error', () => client.destroy());
  client.on('end', onEnd);
  client.on('data', onData);
  /** @param {Buffer} bytes */
  function onData(bytes) {
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf('\n');
    if (end < 0) return head.length > PORT_CHARACTERS_MAX ? void client.destroy() : undefined;
    client.off('data', onData);
    client.off('end', onEnd);
    const port = Number(head.toString('latin1', 0, end));
    if (!(port > 0 && port < 65_536)) return void client.destroy();
    relay(client, port, head.subarray(end + 1));
  }
}

/**
 * @param {net.Socket} client
 * @param {number} port
 * @param {Buffer} rest what came behind the port
 */
function relay(client, port, rest) {
  client.pause();
  const inside = net.connect({ ...options, host: '127.0.0.1', port, noDelay: true });
  let isOpen = false;
  client.on('close', () => inside.destroy());
  inside.on('error', () => (isOpen ? client.destroy() : client.end('-')));
  inside.on('connect', () => {
    isOpen = true;
    client.write('+');
    if (rest.length) inside.write(rest);
    client.pipe(inside);
    inside.pipe(client);
  });
  inside.on('close', (hasFailed) => {
    if (hasFailed && isOpen) client.destroy();
  });
}

function endWithDirectory() {
  if (fs.existsSync(path.join(directory, 'holder'))) return;
  try {
    process.kill(Number(fs.readFileSync('pasta.pid', 'utf8')), 'SIGKILL');
  } catch {
    // There was none, or it has ended.
  }
  process.exit();
}
