// How a new program takes the place of the running ingress: it inherits the listening sockets, so that no connection is
// refused in between. Node passes handles from a parent to its child, so the running process starts the new one.
import { fork } from 'node:child_process';
import type { Server, Socket } from 'node:net';
import type { ListenerName, Predecessor } from '../listeners';
import { contentOf, type Content, type Served } from './served';

/** How the new program is started. */
export interface Program {
  execPath: string;
  execArgv: string[];
  script: string;
  /** Arguments may have paths that are relative to it. */
  cwd: string;
}

const START_MS = 20_000;

/** Resolves when the successor can be called. @throws Error where it does not start */
export async function startSuccessor(program: Program, directory: string, served: Served): Promise<void> {
  const { script, execPath, execArgv, cwd } = program;
  const child = fork(script, [directory, 'successor'], {
    ...{ execPath, execArgv, cwd, detached: true },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  await new Promise<void>((resolve, reject) => {
    const fail = (): void => reject(new Error('The new ingress process did not start.'));
    setTimeout(fail, START_MS).unref();
    child.on('error', fail).on('exit', fail);
    child.on('message', (message: 'ready' | 'content' | { take: ListenerName }) => {
      if (message === 'ready') return resolve();
      if (message === 'content') return void child.send({ name: 'content', content: contentOf(served) });
      child.send({ name: message.take }, served.listeners.get(message.take));
    });
  });
  child.unref();
}

/** What the process that has started this one serves; null where it has gone. */
export async function predecessorOf(): Promise<(Predecessor & { content: Content }) | null> {
  const content = await askParent<Content>('content', 'content', (given) => given.content ?? null);
  if (!content) return null;
  return {
    content,
    take: (name, onSocket) =>
      askParent(name, { take: name }, (_, server) => (server ? accepting(server, onSocket) : null)),
  };
}

interface Given {
  name: ListenerName | 'content';
  content?: Content;
}

/** @param use called in the turn in which the answer comes; null where the parent has gone */
function askParent<T>(
  name: Given['name'],
  message: unknown,
  use: (given: Given, server?: Server) => T | null,
): Promise<T | null> {
  return new Promise((resolve) => {
    const gone = (): void => resolve(null);
    if (!process.connected) return gone();
    const receive = (given: Given, server: Server | undefined): void => {
      if (given.name !== name) return;
      process.off('message', receive).off('disconnect', gone);
      resolve(use(given, server));
    };
    process.on('message', receive).once('disconnect', gone);
    process.send?.(message);
  });
}

// In the turn in which it comes: it accepts from now on.
function accepting(server: Server, onSocket: (socket: Socket) => void): Server {
  Object.assign(server, { allowHalfOpen: true, noDelay: true });
  server.on('connection', onSocket);
  // An accept that fails, e.g. for want of descriptors, is not the end of the listener.
  server.on('error', () => undefined);
  return server;
}
