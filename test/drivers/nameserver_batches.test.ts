// Datagrams that the embedded name server takes and answers in batches, with one system call each way.
import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { datagramBatches, type DatagramBatches } from '../../drivers/nameserver/embedded/datagram_batches';
import { openSockets } from '../../drivers/nameserver/embedded/sockets';
import { freePort } from '../support/free_port';
import { needs } from '../support/programs';

const hasIPv6 = Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === '::1'));
const ADDRESSES = hasIPv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1'];
const isRoot = process.getuid?.() === 0;

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.close();
});

async function bound(address: string): Promise<Socket> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  open.push(socket);
  socket.bind(0, address);
  await once(socket, 'listening');
  return socket;
}

/** Sends without a turn of the loop, so that what is sent waits where nobody reads it. */
async function connectedTo(port: number, address: string): Promise<Socket & { received: string[] }> {
  const client = await bound(address);
  client.connect(port, address);
  await once(client, 'connect');
  const received: string[] = [];
  client.on('message', (message) => received.push(message.toString()));
  return Object.assign(client, { received });
}

const until = async (isDone: () => boolean): Promise<void> => {
  for (const end = Date.now() + 15_000; !isDone() && Date.now() < end;) await new Promise(setImmediate);
};
const texts = (from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, index) => `question ${from + index}`);

/** null where koffi, an optional package, is not installed. */
const found = datagramBatches();

(found ? describe.each(ADDRESSES) : describe.skip.each(ADDRESSES))('at %s', (address) => {
  const batches = found as DatagramBatches;

  test('what waits is answered, at most 64 at a time, each to its client', async () => {
    const server = await bound(address);
    const { port } = server.address();
    const descriptor = batches.descriptorOf(server.address()) as number;
    const [one, other] = [await connectedTo(port, address), await connectedTo(port, address)];
    const clients = new Set<string>();
    const respond = (message: Buffer, from: string): Buffer | null => {
      clients.add(from);
      return message.toString() === 'question 7' ? null : Buffer.from(`${message.toString()}: answer`);
    };
    for (const text of texts(0, 50)) one.send(text);
    for (const text of texts(50, 100)) other.send(text);
    expect(batches.answerWaiting(descriptor, respond)).toBe(64);
    expect(batches.answerWaiting(descriptor, respond)).toBe(36);
    expect(batches.answerWaiting(descriptor, respond)).toBe(0);
    await until(() => one.received.length === 49 && other.received.length === 50);
    const answers = (from: number, to: number): string[] => texts(from, to).map((text) => `${text}: answer`);
    expect(one.received).toEqual(answers(0, 50).filter((text) => text !== 'question 7: answer'));
    expect(other.received).toEqual(answers(50, 100));
    expect([...clients]).toEqual([address]);
  });

  test('one that is too long is left out, and so is a response to a client that is gone', async () => {
    const server = await bound(address);
    const descriptor = batches.descriptorOf(server.address()) as number;
    const [client, gone] = [
      await connectedTo(server.address().port, address),
      await connectedTo(server.address().port, address),
    ];
    gone.send('gone');
    client.send(Buffer.alloc(8_193));
    client.send('');
    client.send('last');
    gone.close();
    open.splice(open.indexOf(gone), 1);
    const seen: string[] = [];
    const respond = (message: Buffer): Buffer => Buffer.from(`seen ${seen.push(message.toString())}`);
    expect(batches.answerWaiting(descriptor, respond)).toBe(4);
    expect(seen).toEqual(['gone', '', 'last']);
    await until(() => client.received.length === 2);
    expect(client.received).toEqual(['seen 2', 'seen 3']);
  });

  test('a socket is found by its address', async () => {
    const [one, other] = [await bound(address), await bound(address)];
    const found = [one, other].map((socket) => batches.descriptorOf(socket.address()));
    expect(new Set([...found, null]).size).toBe(3);
    one.close();
    open.splice(open.indexOf(one), 1);
    const { port } = other.address();
    expect(batches.descriptorOf({ address: '127.9.9.9', port })).toBeNull();
  });
});

const FROM_PORT_0 = `
import socket, struct, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
for turn in range(5):
    raw.sendto(struct.pack('!HHHH', 0, int(sys.argv[1]), 12, 0) + b'zero', ('127.0.0.1', int(sys.argv[1])))
`;

(isRoot ? needs('python3').test : test.skip)('datagrams from port 0 get no answer, and end nothing', async () => {
  const port = await freePort();
  let seen = 0;
  const sockets = await openSockets(port, ['127.0.0.1'], {
    respond(message) {
      seen += 1;
      return Buffer.from(message);
    },
  });
  try {
    // While this process waits for it: the first datagram comes from node:dgram, the others in a batch.
    execFileSync('python3', ['-c', FROM_PORT_0, String(port)]);
    const client = await connectedTo(port, '127.0.0.1');
    client.send('still here');
    await until(() => client.received.length === 1);
    expect(client.received).toEqual(['still here']);
    expect(seen).toBe(1);
  } finally {
    await sockets.close();
  }
});
