// The port of the embedded name server, taken by another program when it starts.
import { createSocket } from 'node:dgram';
import { mkdtempSync, rmSync } from 'node:fs';
import { Resolver } from 'node:dns/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { ZoneSpec } from '../../../engines/dns/nameserver';
import { openEmbeddedNameserver, type EmbeddedNameserver } from '../../../engines/dns/driver';
import { freePort } from '../../support/processes/free_port';
import { waitFor } from '../../support/wait_for';

const ZONE: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 300, name_servers: ['ns1.example.net'], keys: [] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  records: [{ type: 'A', name: 'www', value: '192.0.2.1', ttl: null }],
};

const directory = mkdtempSync(path.join(tmpdir(), 'nameserver-port-'));
const events: string[] = [];
let server: EmbeddedNameserver | null = null;

async function open(port: number): Promise<EmbeddedNameserver> {
  events.length = 0;
  server = await openEmbeddedNameserver({
    ...{ directory, addresses: ['127.0.0.1'], ports: [port], responsesPerSecond: 1_000, own: [] },
    sealer: { prefix: '', seal: (text) => text, open: (text) => text },
    questions: { a: async () => [], aaaa: async () => [] },
    listening: {
      failed: (error) => void events.push((error as NodeJS.ErrnoException).code as string),
      bound: (bound) => void events.push(String(bound)),
    },
  });
  return server;
}

afterEach(async () => {
  await server?.close();
  server = null;
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const holders = {
  async UDP(port: number) {
    const socket = createSocket('udp4');
    await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
    return () => new Promise<void>((resolve) => socket.close(resolve));
  },
  async TCP(port: number) {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(port, '127.0.0.1', resolve));
    return () => new Promise<void>((resolve) => void holder.close(() => resolve()));
  },
};

test.each(Object.entries(holders))('taken over %s, it is bound once it is free', async (_, hold) => {
  const port = await freePort();
  const release = await hold(port);
  const opened = await open(port);
  try {
    expect(opened.port).toBeNull();
    expect(await opened.fingerprint(driverContext(1_000))).toMatchObject({ healthy: false });
    // What comes meanwhile is kept.
    await opened.ensure({ id: 'dnz_port', spec: ZONE }, { state: 'absent' }, driverContext(5_000));
  } finally {
    await release();
  }
  await waitFor('the port is bound', async () => opened.port === port);
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${port}`]);
  expect(await resolver.resolve4('www.example.com')).toEqual(['192.0.2.1']);
  expect(await opened.fingerprint(driverContext(1_000))).toMatchObject({ healthy: true, facts: { port } });
  // Said once, however often it was tried.
  expect(events).toEqual(['EADDRINUSE', String(port)]);
});

test('closed while it waits for its port, it ends at once', async () => {
  const port = await freePort();
  const release = await holders.UDP(port);
  const opened = await open(port);
  await opened.close();
  await release();
  expect(events).toEqual(['EADDRINUSE']);
});
