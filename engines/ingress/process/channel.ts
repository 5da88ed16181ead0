// Calls in both directions over one socket: a line of JSON each, with an answer where one is awaited.
import type { Socket } from 'node:net';

export type Handlers = Record<string, (...args: never[]) => unknown>;

export interface Channel {
  /** Calls without an answer. Lost where the other side has gone. */
  send(name: string, ...args: unknown[]): void;
  /** @throws Error of the other side, or where it has gone; `code` is that of the other side */
  call(name: string, ...args: unknown[]): Promise<unknown>;
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  close(): void;
}

type Frame =
  | { name: string; args: unknown[]; id?: number }
  | { answer: number; value?: unknown; error?: { message: string; code?: string } };

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** Serves `handlers` to the other side of the socket, from now on. */
export function openChannel(socket: Socket, handlers: Handlers): Channel {
  const waiting = new Map<number, Waiting>();
  let next = 0;
  let text = '';
  const write = (frame: Frame): void => void (socket.writable && socket.write(`${JSON.stringify(frame)}\n`));
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = `${text}${chunk}`.split('\n');
    text = lines.pop() as string;
    for (const line of lines) receive(JSON.parse(line) as Frame, handlers, waiting, write);
  });
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
  void closed.then(() => {
    for (const { reject } of waiting.values()) reject(new Error('The connection to the ingress process has ended.'));
    waiting.clear();
  });
  return {
    send: (name, ...args) => write({ name, args }),
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        if (!socket.writable) return reject(new Error('There is no connection to the ingress process.'));
        next += 1;
        waiting.set(next, { resolve, reject });
        write({ name, args, id: next });
      }),
    closed,
    close: () => void socket.destroy(),
  };
}

function receive(frame: Frame, handlers: Handlers, waiting: Map<number, Waiting>, write: (frame: Frame) => void): void {
  if ('answer' in frame) {
    const { answer, value, error } = frame;
    const asked = waiting.get(answer);
    waiting.delete(answer);
    if (error) asked?.reject(Object.assign(new Error(error.message), { code: error.code }));
    else asked?.resolve(value);
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
