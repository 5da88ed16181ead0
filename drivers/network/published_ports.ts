// Ports of servers in networks of projects, at 127.0.0.1 of the host too: for psql, tools of the operator and whatever
// else of the host uses a database. No project reaches the loopback interface of the host.
import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDetached, logTail } from '../../core/process/detached';
import { openQueue, type InTurn } from '../../core/in_turn';
import { commandEnvironment } from '../../core/process/command';
import { DriverError, driverContext } from '../../core/driver';
import type { NetworkDriver, PortForwards, PortLocations } from '../network';
import { readRunningProcess } from '../../core/process/process_note';
import { signalProcess } from '../../core/process/processes';
import { publishedProgram } from './programs';

export interface PublishedPorts {
  /** Replaces all published ports; calls are queued, and `desired` is called in turn. Never rejects. */
  publish(desired: () => Promise<PortLocations>): Promise<void>;
  /** Whether the port is one of them. */
  has(port: number): boolean;
  /** The ports stay. */
  close(): void;
}

type Log = (message: string, error: unknown) => void;

interface Publisher {
  directory: string;
  forwards: PortForwards | undefined;
  log: Log;
  ports: PortLocations;
  /** Connection to the program while it runs. */
  control: Socket | null;
  inTurn: InTurn;
  isClosed: boolean;
}

const START_MS = 10_000;
const ADOPT_MS = 2_000;
const ANSWER_MS = 10_000;
const FORWARD_MS = 10_000;
const POLL_MS = 10;
const RESTART_MS = 500;
const digest = createHash('sha256').update(JSON.stringify(publishedProgram)).digest('hex').slice(0, 16);

/**
 * A program takes the ports, so that no other one does, and leads to them where the kernel does not. Nothing is started
 * before there is a port.
 */
export function openPublishedPorts({ directory, forwards }: NetworkDriver, log: Log): PublishedPorts {
  const publisher: Publisher = {
    directory: path.join(directory, '.published'),
    forwards,
    log,
    ports: new Map(),
    control: null,
    inTurn: openQueue(),
    isClosed: false,
  };
  return {
    publish: (desired) => inTurn(publisher, async () => send(publisher, (publisher.ports = await desired()))),
    has: (port) => publisher.ports.has(port),
    close() {
      publisher.isClosed = true;
      publisher.control?.destroy();
    },
  };
}

function inTurn(publisher: Publisher, work: () => Promise<void>): Promise<void> {
  const log = (error: unknown): void => publisher.log('Ports of databases could not be published on the host.', error);
  return publisher.inTurn(work).catch(log);
}

async function send(publisher: Publisher, ports: PortLocations): Promise<void> {
  if (publisher.isClosed) return;
  const { directory } = publisher;
  publisher.control ??= await connectTo(publisher, ports.size > 0);
  const failed = publisher.control === null ? {} : await takePorts(ports, publisher.control);
  for (const [port, code] of Object.entries(failed))
    publisher.log('A port of a database is in use on the host.', new Error(`Port ${port} is not published: ${code}.`));
  const taken = [...ports].filter(([port]) => failed[port] === undefined);
  await publisher.forwards?.publish(new Map(taken), driverContext(FORWARD_MS));
  // The program has ended.
  if (ports.size === 0) await rm(directory, { recursive: true, force: true });
}

/** Has the program take these ports and no others. @returns codes of errors by port */
async function takePorts(ports: PortLocations, control: Socket): Promise<Record<string, string>> {
  return JSON.parse(await answerOf(control, JSON.stringify(Object.fromEntries(ports)))) as Record<string, string>;
}

/** null: it does not run, and need not. */
async function connectTo(publisher: Publisher, isNeeded: boolean): Promise<Socket | null> {
  const { directory } = publisher;
  const found = await runningProgram(directory);
  const control = found ?? (isNeeded ? await startProgram(directory) : null);
  control?.unref();
  control?.on('error', () => undefined);
  control?.once('close', () => {
    publisher.control = null;
    if (publisher.isClosed || publisher.ports.size === 0) return;
    // Killed: the ports are taken again.
    setTimeout(() => void inTurn(publisher, () => send(publisher, publisher.ports)), RESTART_MS).unref();
  });
  return control;
}

async function runningProgram(directory: string): Promise<Socket | null> {
  const note = noteOf(directory);
  if (note === null) return null;
  // Another control plane may have started it a moment ago.
  for (const end = Date.now() + ADOPT_MS; note.digest === digest && Date.now() < end; await sleep(POLL_MS)) {
    const control = await connected(path.join(directory, 'control'));
    if (control !== null) return control;
  }
  signalProcess(note.pid, 'SIGKILL');
  return null;
}

async function startProgram(directory: string): Promise<Socket> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await rm(path.join(directory, 'process'), { force: true });
  for (const { name, text } of publishedProgram) await writeFile(path.join(directory, name), text);
  const log = path.join(directory, 'log');
  const script = path.join(directory, publishedProgram[0].name);
  const command = [process.execPath, '--max-old-space-size=64', script, directory, digest];
  const probe = async (): Promise<Socket | null> =>
    noteOf(directory) === null ? null : connected(path.join(directory, 'control'));
  const control = await startDetached(
    { command, cwd: '/', env: commandEnvironment, log: { file: log, mode: 'replace' } },
    probe,
    START_MS,
  );
  if (control !== null) return control;
  throw Object.assign(new DriverError('transient', 'The program that publishes ports of databases did not start.'), {
    cause: logTail(log),
  });
}

/** The note of a running program. */
function noteOf(directory: string): { pid: number; digest: string } | null {
  const note = readRunningProcess(path.join(directory, 'process'));
  return note && { pid: note.pid, digest: note.others[0] ?? '' };
}

function connected(file: string): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ path: file });
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(null));
  });
}

/** The line that the program answers with. */
function answerOf(control: Socket, line: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const late = setTimeout(() => control.destroy(), ANSWER_MS);
    const end = (): void => {
      clearTimeout(late);
      control.off('data', onData);
      control.off('close', onClose);
    };
    const onData = (bytes: Buffer): void => {
      text += bytes.toString('utf8');
      if (!text.includes('\n')) return;
      end();
      resolve(text);
    };
    const onClose = (): void => (
      end(),
      reject(new Error('The program that publishes ports of databases does not answer.'))
    );
    control.on('data', onData);
    control.on('close', onClose);
    control.write(`${line}\n`);
  });
}
