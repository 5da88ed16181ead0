// Calls between two processes, in both directions, with an answer where one is awaited: over a Unix socket (a line of
// JSON each, between versions of the program that may differ), or over the channel that node opens to a child.
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';

export type Handlers = Record<string, (...args: never[]) => unknown>;

export interface Channel {
  /** Calls without a response. Lost if the other side is gone. */
  send(name: string, ...args: unknown[]): void;
  /** @throws Error of the other side, with its `code`; Error if the other side is gone */
  call<T = unknown>(name: string, ...args: unknown[]): Promise<T>;
  /** Resolves when the other side has gone. */
  readonly closed: Promise<void>;
  close(): void;
}

type Frame =
  | { name: string; args: unknown[]; id?: number }
  | { answer: number; value?: unknown; error?: { message: string; code?: string } };

/** The transport of frames. */
interface Wire {
  isOpen(): boolean;
  /** @param lost called where it could not be sent */
  send(frame: Frame, lost: (error: Error) => void): void;
  receive(listener: (frame: Frame) => void): void;
  closed: Promise<void>;
  close(): void;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Serves `handlers` to the other side of the socket, from now on. */
export function openSocketChannel(socket: Socket, handlers: Handlers): Channel {
  socket.setEncoding('utf8');
  socket.on('error', () => undefined);
  return openChannel(
    {
      isOpen: () => socket.writable,
      send: (frame) => void socket.write(`${JSON.stringify(frame)}\n`),
      receive(listener) {
        let text = '';
        socket.on('data', (chunk: string) => {
          const lines = `${text}${chunk}`.split('\n');
          text = lines.pop() as string;
          for (const line of lines) listener(JSON.parse(line) as Frame);
        });
      },
      closed: new Promise((resolve) => socket.on('close', () => resolve())),
      close: () => void socket.destroy(),
    },
    handlers,
  );
}

/** A channel to a child that was started with an IPC channel, or, given `process`, to the parent of this process. */
export function openProcessChannel(other: ChildProcess | NodeJS.Process, handlers: Handlers): Channel {
  const end = other as ChildProcess;
  return openChannel(
    {
      isOpen: () => end.connected,
      send: (frame, lost) => void end.send(frame, (error) => error && lost(error)),
      receive: (listener) => void end.on('message', (frame) => listener(frame as Frame)),
      closed: new Promise((resolve) => {
        for (const event of ['exit', 'error', 'disconnect']) end.on(event, () => resolve());
      }),
      close: () => void (end.connected && end.disconnect()),
    },
    handlers,
  );
}

function openChannel(wire: Wire, handlers: Handlers): Channel {
  const waiting = new Map<number, Waiting>();
  let next = 0;
  const write = (frame: Frame, lost: (error: Error) => void = () => undefined): void =>
    void (wire.isOpen() && wire.send(frame, lost));
  wire.receive((frame) => receive(frame, handlers, waiting, write));
  void wire.closed.then(() => {
    for (const { reject } of waiting.values()) reject(new Error('The other process has ended.'));
    waiting.clear();
  });
  return {
    send: (name, ...args) => write({ name, args }),
    call: <T>(name: string, ...args: unknown[]) =>
      new Promise<T>((resolve, reject) => {
        if (!wire.isOpen()) return reject(new Error('There is no connection to the other process.'));
        next += 1;
        waiting.set(next, { resolve: resolve as (value: unknown) => void, reject });
        write({ name, args, id: next }, reject);
      }),
    closed: wire.closed,
    close: wire.close,
  };
}

function receive(frame: Frame, handlers: Handlers, waiting: Map<number, Waiting>, write: (frame: Frame) => void): void {
  if ('answer' in frame) {
    const { answer, value, error } = frame;
    const call = waiting.get(answer);
    waiting.delete(answer);
    if (error) call?.reject(Object.assign(new Error(error.message), { code: error.code }));
    else call?.resolve(value);
    return;
  }
  const { name, args, id } = frame;
  const result = Promise.resolve().then(() => handlers[name]?.(...(args as never[])));
  if (id === undefined) return void result.catch(() => undefined);
  result.then(
    (value) => write({ answer: id, value }),
    (error: NodeJS.ErrnoException) => write({ answer: id, error: { message: error.message, code: error.code } }),
  );
}
