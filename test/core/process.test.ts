// Processes: found again after a restart, called, started and stopped.
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer, connect, type Socket } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { openProcessChannel, openSocketChannel, type Channel, type Handlers } from '../../core/process/channel';
import { nextRestart, stopChild } from '../../core/process/children';
import { logTail, startDetached } from '../../core/process/detached';
import { bootId, parseProcessNote, readRunningProcess } from '../../core/process/process_note';
import { isPidTaken, processOf } from '../../core/process/processes';

let directory: string;
const children = new Set<ChildProcess>();

beforeEach(() => void (directory = mkdtempSync(path.join(os.tmpdir(), 'process-'))));
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  rmSync(directory, { recursive: true, force: true });
});

function started(child: ChildProcess): ChildProcess {
  children.add(child);
  return child;
}

const sleeper = (): ChildProcess => started(spawn('sleep', ['60']));

describe('a note', () => {
  const note = (words: unknown[]): string => {
    const file = path.join(directory, 'note');
    writeFileSync(file, `${words.join(' ')}\n`);
    return file;
  };

  test('finds the process as long as it runs, and no other one of the same id', async () => {
    const child = sleeper();
    const [pid, start] = [child.pid as number, processOf(child.pid as number)?.start];
    const file = note([pid, start, bootId(), 'more', 'words']);
    expect(readRunningProcess(file)).toEqual({ pid, start, boot: bootId(), others: ['more', 'words'] });
    expect(readRunningProcess(note([pid, `${start}0`, bootId()]))).toBeNull();
    expect(readRunningProcess(note([pid, start, 'boot-of-yesterday']))).toBeNull();
    note([pid, start, bootId()]);
    await stopChild(child, () => child.kill('SIGTERM'), 5_000);
    expect(readRunningProcess(file)).toBeNull();
    expect(isPidTaken(pid)).toBe(false);
  });

  test('that is absent, empty or cut off names none', () => {
    expect(readRunningProcess(path.join(directory, 'absent'))).toBeNull();
    expect(['', '\n', 'x 1 2', '-1 1 2'].map(parseProcessNote)).toEqual([null, null, null, null]);
    expect(parseProcessNote('12')).toEqual({ pid: 12, start: '', boot: '', others: [] });
  });
});

describe('calls', () => {
  const failing = (): never => {
    throw Object.assign(new Error('no room'), { code: 'ENOSPC' });
  };
  const CHILD = `
    process.on('message', ({ name, args, id, answer }) => {
      if (name === 'double') process.send({ answer: id, value: args[0] * 2 });
      if (name === 'fail') process.send({ answer: id, error: { message: 'no room', code: 'ENOSPC' } });
      if (name === 'exit') process.exit();
      if (name === 'greet') process.send({ name: 'greeted', args: ['you'] });
    });`;

  async function overSocket(handlers: Handlers): Promise<[Channel, () => void]> {
    const file = path.join(directory, 'socket');
    const others: Socket[] = [];
    const server = createServer((socket) => {
      others.push(socket);
      const channel: Channel = openSocketChannel(socket, {
        double: (value: number) => value * 2,
        fail: failing,
        exit: () => socket.destroy(),
        greet: () => channel.send('greeted', 'you'),
      });
    });
    await new Promise<void>((resolve) => server.listen(file, resolve));
    return [openSocketChannel(connect(file), handlers), () => server.close()];
  }

  function overIpc(handlers: Handlers): Promise<[Channel, () => void]> {
    const script = path.join(directory, 'child.js');
    writeFileSync(script, CHILD);
    return Promise.resolve([openProcessChannel(started(fork(script)), handlers), () => undefined]);
  }

  test.each([
    ['a socket', overSocket],
    ['the channel of a child', overIpc],
  ])('over %s are answered, fail with the code of the other side, and end with it', async (_name, open) => {
    let greeted: (name: string) => void = () => undefined;
    const isGreeted = new Promise<string>((resolve) => (greeted = resolve));
    const [channel, close] = await open({ greeted: (name: string) => greeted(name) });
    expect(await Promise.all([channel.call('double', 4), channel.call('double', 21)])).toEqual([8, 42]);
    await expect(channel.call('fail')).rejects.toMatchObject({ message: 'no room', code: 'ENOSPC' });
    channel.send('greet');
    expect(await isGreeted).toBe('you');
    const unanswered = channel.call('never').catch((error: Error) => error.message);
    channel.send('exit');
    await channel.closed;
    expect(await channel.call('double', 1).catch((error: Error) => error.message)).toMatch(/no connection|has ended/);
    expect([undefined, 'The other process has ended.']).toContain(await unanswered);
    close();
  });
});

test('a child that ends at once is started again later and later, or no more', () => {
  const policy = { shortLifeMs: 1_000, pausesMs: [0, 10, 20], then: 'last pause again' } as const;
  expect(nextRestart(policy, 0, 5)).toEqual({ shortLives: 1, pauseMs: 10 });
  expect(nextRestart(policy, 7, 5)).toEqual({ shortLives: 8, pauseMs: 20 });
  expect(nextRestart(policy, 7, 5_000)).toEqual({ shortLives: 0, pauseMs: 0 });
  expect(nextRestart(policy, 7, null)).toEqual({ shortLives: 0, pauseMs: 0 });
  expect(nextRestart({ ...policy, then: 'give up' }, 2, 5)).toEqual({ shortLives: 3, pauseMs: null });
});

test('a child that does not heed is killed', async () => {
  const child = started(spawn('sh', ['-c', 'trap "" TERM; echo ready; while :; do sleep 1; done']));
  await new Promise((resolve) => child.stdout?.once('data', resolve));
  await stopChild(child, () => child.kill('SIGTERM'), 50);
  expect(child.signalCode).toBe('SIGKILL');
  await stopChild(child, () => child.kill('SIGTERM'), 50);
});

describe('a program of its own', () => {
  const program = (script: string) => {
    const log = path.join(directory, 'log');
    return { command: ['sh', '-c', script], cwd: directory, env: { PATH: process.env.PATH }, log };
  };
  const start = (script: string, withinMs = 5_000): Promise<string | null> => {
    const { log, ...others } = program(script);
    return startDetached({ ...others, log: { file: log, mode: 'replace' } }, answer, withinMs);
  };
  const answer = (): Promise<string | null> => {
    try {
      return Promise.resolve(readFileSync(path.join(directory, 'answer'), 'utf8') || null);
    } catch {
      return Promise.resolve(null);
    }
  };

  test('answers once it serves, also where another one took its place', async () => {
    expect(await start('sleep 0.1; printf served > answer; env > environment')).toBe('served');
    rmSync(path.join(directory, 'answer'));
    expect(await start('(sleep 0.2; printf other > answer) & exit 1')).toBe('other');
    expect(readFileSync(path.join(directory, 'environment'), 'utf8')).not.toContain('HOME=');
  });

  test('is given up when it has ended, with what it printed', async () => {
    const begun = performance.now();
    expect(await start('echo "cannot listen" >&2; exit 1')).toBeNull();
    expect(performance.now() - begun).toBeLessThan(4_000);
    expect(logTail(path.join(directory, 'log'))).toBe('cannot listen\n');
    expect(statSync(path.join(directory, 'log')).mode & 0o777).toBe(0o600);
    expect(logTail(path.join(directory, 'absent'))).toBe('');
    expect(await startDetached(absent(), answer, 5_000)).toBeNull();
  });

  const absent = () => ({
    command: ['/nonexistent/program'],
    cwd: directory,
    env: {},
    log: { file: path.join(directory, 'log'), mode: 'append' as const },
  });
});
