// The program that lets connections into a network of an ordinary user, here on the network of the host.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { connectInto, isAnswering, isPortTaken } from '../../../core/outbound/network_location';
import { connectInside as connectInsideFile, gateProgram } from '../../../drivers/network/programs';
import { retryCheck } from '../../support/wait_for';

const running = new Set<Gate>();
let server: Server;
let port: number;
let silent: Socket[] = [];

interface Gate {
  directory: string;
  gate: string;
  program: ChildProcess;
}

// Says something first, then what it hears.
beforeAll(async () => {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('first ');
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});

afterEach(() => {
  for (const { program, directory } of running) {
    program.kill('SIGKILL');
    rmSync(directory, { recursive: true, force: true });
  }
  running.clear();
  for (const socket of silent) socket.destroy();
  silent = [];
});

afterAll(() => server.close());

async function startGate(): Promise<Gate> {
  const directory = mkdtempSync('/tmp/platform-gate-');
  writeFileSync(path.join(directory, 'gate.js'), gateProgram.text);
  const program = spawn(process.execPath, [path.join(directory, 'gate.js'), directory], { stdio: 'inherit' });
  const started = { directory, program, gate: path.join(directory, 'gate') };
  running.add(started);
  await retryCheck(async () => expect(await isAnswering(started)).toBe(true));
  return started;
}

function open(gate: string, to = port): Promise<Socket> {
  return new Promise((resolve, onFailed) =>
    connectInto({ gate }, to, { onConnected: (socket) => resolve(received(socket)), onFailed }),
  );
}

const texts = new WeakMap<Socket, string>();

/** Keeps what comes from now on, for readUntil. */
function received(socket: Socket): Socket {
  texts.set(socket, '');
  return socket.on('data', (bytes: Buffer) => texts.set(socket, texts.get(socket) + bytes.toString('latin1')));
}

async function failureOf(gate: string, to = port): Promise<string | undefined> {
  return open(gate, to).then(
    (socket) => (socket.destroy(), 'connected'),
    (error: NodeJS.ErrnoException) => error.code,
  );
}

/** All that has come once it ends with `last`. */
function readUntil(socket: Socket, last: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const check = (): void => {
      const text = texts.get(socket) ?? '';
      if (text.endsWith(last)) resolve(text);
    };
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`closed after ${texts.get(socket)?.slice(0, 100)}`)));
    socket.on('data', check);
    check();
  });
}

async function freePort(): Promise<number> {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port: found } = taken.address() as AddressInfo;
  await new Promise((resolve) => taken.close(resolve));
  return found;
}

const descriptorsOf = (pid: number | undefined): number => readdirSync(`/proc/${pid}/fd`).length;

test('megabytes pass unchanged, and the end of one side is the end of the other', async () => {
  const { gate } = await startGate();
  const socket = await open(gate);
  const sent = 'x'.repeat(5_000_000);
  const answer = readUntil(socket, 'end');
  socket.write(`${sent}end`);
  expect((await answer).length).toBe('first '.length + sent.length + 3);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.end();
  await closed;
});

test('1,000 connections leave no descriptor open, neither here nor in the gate', async () => {
  const { gate, program } = await startGate();
  (await open(gate)).destroy();
  const settled = (): Promise<number> => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  await retryCheck(async () => expect(await settled()).toBe(0));
  const before = [descriptorsOf(process.pid), descriptorsOf(program.pid)];
  for (let round = 0; round < 5; round += 1) {
    const sockets = await Promise.all(Array.from({ length: 200 }, () => open(gate)));
    for (const socket of sockets) socket.destroy();
    await retryCheck(async () => expect(descriptorsOf(program.pid)).toBeLessThanOrEqual(before[1]!));
  }
  await retryCheck(async () => expect(await settled()).toBe(0));
  await retryCheck(async () => expect(descriptorsOf(process.pid)).toBeLessThanOrEqual(before[0]!));
});

test('connections that are given up or refused leave no descriptor open', async () => {
  const { gate, program } = await startGate();
  (await open(gate)).destroy();
  const before = [descriptorsOf(process.pid), descriptorsOf(program.pid)];
  const heard: string[] = [];
  const never = { onConnected: () => void heard.push('connected'), onFailed: () => void heard.push('failed') };
  for (let count = 0; count < 100; count += 1) connectInto({ gate }, port, never)();
  const closed = await freePort();
  for (let count = 0; count < 20; count += 1) expect(await failureOf(gate, closed)).toBe('ECONNREFUSED');
  await retryCheck(async () => {
    expect(descriptorsOf(process.pid)).toBeLessThanOrEqual(before[0]!);
    expect(descriptorsOf(program.pid)).toBeLessThanOrEqual(before[1]!);
  });
  expect(heard).toEqual([]);
});

test('the gate passes the bytes on, and with it the connection ends', async () => {
  const { gate, program } = await startGate();
  const socket = await open(gate);
  const answer = readUntil(socket, 'more');
  socket.write('and more');
  expect(await answer).toBe('first and more');
  expect(await isPortTaken({ gate }, port)).toBe(true);
  expect(await failureOf(gate, await freePort())).toBe('ECONNREFUSED');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  program.kill('SIGKILL');
  await closed;
});

test('a caller of before is served as before: the port, the answer, then bytes', async () => {
  const { gate } = await startGate();
  const socket = received(connect({ path: gate }));
  const answer = readUntil(socket, 'early');
  socket.write(`${port}\nearly`);
  expect(await answer).toMatch(/^\+(first early|first early)$/);
  socket.destroy();
});

describe('of a gate that misbehaves', () => {
  async function misbehave(serve: (socket: Socket) => void): Promise<string> {
    const directory = mkdtempSync('/tmp/platform-gate-');
    const hostile = createServer((socket) => (silent.push(socket.on('error', () => undefined)), serve(socket)));
    await new Promise<void>((resolve) => hostile.listen(path.join(directory, 'gate'), resolve));
    running.add({ directory, gate: '', program: { kill: () => hostile.close() } as unknown as ChildProcess });
    return path.join(directory, 'gate');
  }

  test('one that closes at once fails the connection', async () => {
    expect(await failureOf(await misbehave((socket) => socket.end()))).toBe('ECONNRESET');
  });

  test('one that answers something else refuses the connection', async () => {
    expect(await failureOf(await misbehave((socket) => socket.end('x')))).toBe('ECONNREFUSED');
  });

  test('one that says nothing leaves nothing once the caller gives up', async () => {
    for (let round = 0; round < 2; round += 1) {
      const gate = await misbehave(() => undefined);
      const before = descriptorsOf(process.pid);
      const end = new AbortController();
      const failed = new Promise((resolve) =>
        connectInto({ gate }, port, { onConnected: () => resolve('connected'), onFailed: resolve }, end.signal),
      );
      await retryCheck(async () => expect(silent.length).toBeGreaterThan(0));
      end.abort();
      expect(await failed).toMatchObject({ code: 'ABORT_ERR' });
      for (const socket of silent) socket.destroy();
      silent = [];
      await retryCheck(async () => expect(descriptorsOf(process.pid)).toBeLessThanOrEqual(before));
    }
  });
});

describe('a program of its own', () => {
  type ConnectInside = (gate: string, port: number, done: (socket: Socket | null) => void) => void;
  let connectInside: ConnectInside;
  const copies = mkdtempSync('/tmp/platform-gate-');
  afterAll(() => rmSync(copies, { recursive: true, force: true }));
  beforeAll(() => {
    const copy = path.join(copies, connectInsideFile.name);
    writeFileSync(copy, connectInsideFile.text);
    ({ connectInside } = jest.requireActual<{ connectInside: ConnectInside }>(copy));
  });
  const inside = (gate: string, to = port): Promise<Socket | null> =>
    new Promise((resolve) => connectInside(gate, to, (socket) => resolve(socket && received(socket))));

  test('nothing of what both sides say is lost', async () => {
    const { gate, program } = await startGate();
    const socket = (await inside(gate)) as Socket;
    const sent = 'x'.repeat(1_000_000);
    const answer = readUntil(socket, 'end');
    socket.write(`${sent}end`);
    expect(await answer).toBe(`first ${sent}end`);
    const ended = new Promise((resolve) => socket.once('end', resolve).once('close', resolve));
    program.kill('SIGKILL');
    await ended;
    socket.destroy();
  });

  test('a port that takes nothing, and a gate that is gone, give no connection', async () => {
    const { gate, program } = await startGate();
    expect(await inside(gate, await freePort())).toBeNull();
    program.kill('SIGKILL');
    await new Promise((resolve) => program.once('exit', resolve));
    expect(await inside(gate)).toBeNull();
  });

  test('hundreds at once leave no descriptor behind', async () => {
    const { gate, program } = await startGate();
    const [own, ofGate] = [descriptorsOf(process.pid), descriptorsOf(program.pid)];
    const sockets = await Promise.all(Array.from({ length: 300 }, () => inside(gate)));
    for (const socket of sockets) socket?.destroy();
    expect(sockets).not.toContain(null);
    await retryCheck(async () => expect(descriptorsOf(process.pid)).toBeLessThan(own + 10));
    await retryCheck(async () => expect(descriptorsOf(program.pid)).toBeLessThan(ofGate + 10));
  });
});
