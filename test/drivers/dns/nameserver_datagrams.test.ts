// Datagrams that the embedded name server takes and answers.
import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { openSockets } from '../../../engines/dns/process/sockets';
import { freePort } from '../../support/processes/free_port';
import { needs } from '../../support/runner/programs';

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

describe.each(ADDRESSES)('at %s', (address) => {
  test('what waits is answered, each to its client', async () => {
    const port = await freePort();
    const clients = new Set<string>();
    const sockets = await openSockets(port, [address], {
      respond(message, from) {
        clients.add(from);
        const text = message.toString();
        return text === 'question 7' ? null : Buffer.from(`${text}: answer`);
      },
    });
    try {
      const [one, other] = [await connectedTo(port, address), await connectedTo(port, address)];
      for (const text of texts(0, 50)) one.send(text);
      for (const text of texts(50, 100)) other.send(text);
      await until(() => one.received.length === 49 && other.received.length === 50);
      const answers = (from: number, to: number): string[] => texts(from, to).map((text) => `${text}: answer`);
      expect(one.received).toEqual(answers(0, 50).filter((text) => text !== 'question 7: answer'));
      expect(other.received).toEqual(answers(50, 100));
      expect([...clients]).toEqual([address]);
    } finally {
      await sockets.close();
    }
  });

  test('one that is too long is left out, and so is a response to a client that is gone', async () => {
    const port = await freePort();
    const seen: string[] = [];
    const respond = (message: Buffer): Buffer => Buffer.from(`seen ${seen.push(message.toString())}`);
    const sockets = await openSockets(port, [address], { respond });
    try {
      const [client, gone] = [await connectedTo(port, address), await connectedTo(port, address)];
      gone.send('gone');
      client.send(Buffer.alloc(8_193));
      client.send('');
      client.send('last');
      gone.close();
      open.splice(open.indexOf(gone), 1);
      await until(() => client.received.length === 2);
      expect(seen).toEqual(['gone', '', 'last']);
      expect(client.received).toEqual(['seen 2', 'seen 3']);
    } finally {
      await sockets.close();
    }
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
