// The control plane's side of the ingress process: finds it or starts it, gives it what it serves, and starts it again
// where it has ended.
import { mkdirSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startDetached, type DetachedProgram } from '../../../core/process/detached';
import type { IngressCallbacks, IngressDriver } from '../ingress';
import { openSocketChannel, type Channel, type Handlers } from '../../../core/process/channel';
import { inheritedNodeArguments } from '../../../core/process/node_arguments';
import { connectControl } from './control_socket';
import type { Program } from './handover';
import { programVersion, type Greeting, type IngressProcessSettings, type Report } from './settings';

export interface IngressProcessOptions {
  /** For its socket and its log. */
  directory: string;
  settings: IngressProcessSettings;
  callbacks: Pick<IngressCallbacks, 'certificate' | 'challenge'>;
  onReport(report: Report): void;
  /** After the connection was lost and made again, maybe to another process: it knows nothing then. */
  onReconnected(channel: Channel): void;
  log(message: string, error?: unknown): void;
  /** How the process is started; absent: like this one. */
  program?: Program;
}

export interface IngressProcess {
  ports: IngressDriver['ports'];
  /** Number of the last read of routes that it knows. */
  reads: number;
  /** The present connection; while it is lost, the last one. */
  channel(): Channel;
  /** To processes that were replaced, and finish the responses that they have begun. */
  draining: ReadonlySet<Channel>;
  /** Leaves the process to the next control plane. */
  detach(): void;
  /** Ends the process; open requests have `graceMs`. */
  end(graceMs: number): Promise<void>;
}

interface Connection {
  channel: Channel;
  greeting: Greeting;
}

const START_MS = 20_000;
const RETRY_MS = 200;
/** Open requests of the one that must end before the next one can listen. */
const STOPPED_GRACE_MS = 30_000;
/** Responses and WebSockets of the one that is replaced, while the new one serves: a large file takes long. */
const REPLACED_GRACE_MS = 60 * 60_000;

/** Where the process cannot be had: `code` EBUSY while another control plane has it, else that of `listen`. */
export async function openIngressProcess(options: IngressProcessOptions): Promise<IngressProcess> {
  const first = await connectOrStart(options);
  const draining = new Set<Channel>();
  const opened = await openOn(first, options, draining);
  let connection = opened.connection;
  let isDetached = false;
  const watch = async (): Promise<void> => {
    while (!isDetached) {
      await connection.channel.closed;
      if (isDetached) return;
      options.log('The ingress process has ended. It is started again.');
      const next = await reconnect(options, opened.ports, () => isDetached);
      if (!next) return;
      connection = next;
      options.onReconnected(next.channel);
    }
  };
  void watch();
  return {
    ports: opened.ports,
    reads: opened.reads,
    channel: () => connection.channel,
    draining,
    detach() {
      isDetached = true;
      for (const channel of [connection.channel, ...draining]) channel.close();
    },
    async end(graceMs) {
      isDetached = true;
      connection.channel.send('end', graceMs);
      await connection.channel.closed;
    },
  };
}

/** Opens a new process, adopts one that serves as it should, or replaces one that does not. */
async function openOn(
  connection: Connection,
  options: IngressProcessOptions,
  draining: Set<Channel>,
): Promise<{ connection: Connection; ports: IngressDriver['ports']; reads: number }> {
  const { channel, greeting } = connection;
  if (!greeting.opened) return { connection, ports: await callOpen(channel, options.settings), reads: 0 };
  const { settings, ports, reads } = greeting.opened;
  const isSame = greeting.version === programVersion() && isDeepStrictEqual(settings, plain(options.settings));
  if (isSame) return { connection, ports, reads };
  const { host, port, tlsPort } = options.settings;
  const keepsPorts = settings.host === host && settings.port === port && settings.tlsPort === tlsPort;
  if (!keepsPorts) {
    channel.send('end', STOPPED_GRACE_MS);
    await channel.closed;
    return openOn(await connectOrStart(options), options, draining);
  }
  await channel.call('startSuccessor', programOf(options));
  const successor = await connected(options);
  if (!successor) throw new Error('The new ingress process cannot be reached.');
  const opened = { connection: successor, ports: await callOpen(successor.channel, options.settings), reads };
  channel.send('end', REPLACED_GRACE_MS, REPLACED_GRACE_MS);
  draining.add(channel);
  void channel.closed.then(() => draining.delete(channel));
  return opened;
}

async function callOpen(channel: Channel, settings: IngressProcessSettings): Promise<IngressDriver['ports']> {
  return (await channel.call('open', settings)) as IngressDriver['ports'];
}

/** With the ports that it had, also where free ones were asked for. */
async function reconnect(
  options: IngressProcessOptions,
  ports: IngressDriver['ports'],
  isDetached: () => boolean,
): Promise<Connection | null> {
  const settings = { ...options.settings, port: ports.http, tlsPort: ports.https };
  while (!isDetached()) {
    try {
      const connection = await connectOrStart(options);
      if (!connection.greeting.opened) await callOpen(connection.channel, settings);
      return connection;
    } catch (error) {
      options.log('The ingress process could not be started.', error);
      await sleep(RETRY_MS);
    }
  }
  return null;
}

async function connectOrStart(options: IngressProcessOptions): Promise<Connection> {
  const running = await connected(options);
  if (running) return running;
  mkdirSync(options.directory, { recursive: true, mode: 0o700 });
  const connection = await startDetached(detachedProgram(options), () => connected(options), START_MS);
  if (connection) return connection;
  throw new Error(`The ingress process did not start; ${logFile(options.directory)} says why.`);
}

async function connected(options: IngressProcessOptions): Promise<Connection | null> {
  const socket = await connectControl(options.directory);
  if (!socket) return null;
  const channel = openSocketChannel(socket, handlersOf(options));
  // It may end at this moment.
  const greeting = (await channel.call('hello').catch(() => null)) as Greeting | null;
  if (greeting?.isBusy) {
    channel.close();
    throw Object.assign(new Error('Another control plane has the ingress of this directory.'), { code: 'EBUSY' });
  }
  return greeting && { channel, greeting };
}

function handlersOf({ callbacks, onReport, log }: IngressProcessOptions): Handlers {
  return {
    certificate: (host: string) => callbacks.certificate(host),
    // A process of an earlier version sends the token alone.
    challenge: (token: string, host = '') => callbacks.challenge(token, host),
    report: (report: Report) => onReport(report),
    log: (message: string, error: string | null) => log(message, error ?? undefined),
  };
}

function detachedProgram(options: IngressProcessOptions): DetachedProgram {
  const { directory } = options;
  const { execPath, execArgv, script, cwd } = programOf(options);
  return {
    command: [execPath, ...execArgv, script, directory],
    cwd,
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
    log: { file: logFile(directory), mode: 'append' },
  };
}

function programOf({ program }: IngressProcessOptions): Program {
  const { execPath } = process;
  return (
    program ?? { execPath, execArgv: inheritedNodeArguments(), script: require.resolve('./main'), cwd: process.cwd() }
  );
}

const logFile = (directory: string): string => path.join(directory, 'log');

/** As it comes out of a message. */
function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}
