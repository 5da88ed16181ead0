// A program that speaks as much of the protocol of PostgreSQL as it takes to be asked something.
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface HostileSource {
  /** Without a password. */
  address: string;
  /** That were sent to it. */
  passwords: string[];
  questions(): number;
  stop(): Promise<void>;
}

function message(kind: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(kind, 'latin1');
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const ASK_PASSWORD = message('R', Buffer.from([0, 0, 0, 3]));
const WELCOME = Buffer.concat([message('R', Buffer.alloc(4)), message('Z', Buffer.from('I'))]);
/** It names five columns, and has none. */
const MALFORMED = message('D', Buffer.from([0, 5]));
const ROWS = Buffer.concat(Array.from({ length: 10_000 }, () => message('D', Buffer.alloc(2))));

/** It says that it has a gigabyte. */
const OVERSIZED = Buffer.from([...Buffer.from('D'), 0x40, 0, 0, 0, 0, 1]);

/**
 * `malformed`: an answer that ends too early; `endless`: rows without end; `oversized`: a row of a gigabyte; `silent`:
 * nothing.
 */
export async function startHostileSource(
  kind: 'malformed' | 'endless' | 'oversized' | 'silent',
): Promise<HostileSource> {
  const passwords: string[] = [];
  const sockets = new Set<Socket>();
  let questions = 0;
  const pour = (socket: Socket): void => {
    while (!socket.destroyed && socket.write(ROWS));
    if (!socket.destroyed) socket.once('drain', () => pour(socket));
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(ASK_PASSWORD);
      socket.on('data', (data) => {
        if (data[0] === 'p'.charCodeAt(0)) {
          passwords.push(data.toString('latin1', 5, data.readInt32BE(1)));
          socket.write(WELCOME);
        } else if (data[0] === 'Q'.charCodeAt(0)) {
          questions += 1;
          if (kind === 'malformed') socket.write(MALFORMED);
          else if (kind === 'oversized') socket.write(OVERSIZED);
          else if (kind === 'endless') pour(socket);
        }
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    ...{ address: `postgresql://someone@127.0.0.1:${port}/shop?sslmode=disable`, passwords },
    questions: () => questions,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
