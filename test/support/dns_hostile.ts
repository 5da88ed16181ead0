// What a name server meets on bad days.
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

/** Listens where the name server wants to, and answers nothing. @returns how to end that */
export async function occupy(port: number): Promise<() => Promise<void>> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const socket = createSocket('udp4');
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
  let ending: Promise<unknown> | null = null;
  const end = (): Promise<unknown> =>
    Promise.all([
      new Promise((resolve) => server.close(resolve)),
      new Promise<void>((resolve) => socket.close(resolve)),
    ]);
  return async () => void (await (ending ??= end()));
}

/** The question with bytes that are changed, cut off or added, by a number. */
export function damagedQuestion(question: Buffer, number: number): Buffer {
  const bytes = Buffer.from(question);
  const at = (number * 7919) % bytes.length;
  bytes[at] = (number * 31) % 256;
  bytes[(at * 17) % bytes.length] = (number >> 8) % 256;
  return number % 3 ? bytes : Buffer.concat([bytes.subarray(0, at), Buffer.alloc(number % 300, number)]);
}
