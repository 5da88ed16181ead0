// What a name server meets on bad days.
import { createSocket } from 'node:dgram';
import { createServer, type Socket } from 'node:net';
import * as packet from 'dns-packet';

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

/** The response to a question over a connection, which stays open. */
export async function queryOver(socket: Socket, question: Buffer): Promise<Buffer> {
  const length = Buffer.from([question.length >> 8, question.length & 0xff]);
  let received = Buffer.alloc(0);
  const answered = new Promise<Buffer>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length > 2 && received.length >= 2 + received.readUInt16BE(0)) resolve(received.subarray(2));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('closed')));
  });
  socket.write(Buffer.concat([length, question]));
  return answered;
}

/** `none` for a response without an address in front. */
export function addressIn(response: Buffer): string {
  const [first] = packet.decode(response).answers ?? [];
  return first?.type === 'A' ? first.data : 'none';
}
