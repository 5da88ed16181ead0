/** @user any */
// Operations: verifyDnsZone.
// Addresses that the owners of zones choose, and to which this machine has no way: a question to them is not answered,
// and nothing more happens. An error that nobody catches would end the service.
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import * as packet from 'dns-packet';
import { openNotifier } from '../../engines/dns/notify';
import { withConfig } from '../support/config';
import { startService, type TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

jest.setTimeout(60_000);
/** The kernel refuses a connection to the first at once (EACCES); to the others there may be a way, or none. */
const ADDRESSES = ['255.255.255.255', '240.0.0.1', '0.0.0.0'];

let root: Socket;
let service: TestService;
let glue = '';
let asked = 0;

beforeAll(async () => {
  root = createSocket('udp4', (message, peer) => {
    asked += 1;
    const { id = 0, questions = [] } = packet.decode(message);
    const ns: packet.Answer = { type: 'NS', name: 'example.com', ttl: 60, data: 'ns.example.com' };
    const address: packet.Answer = { type: 'A', name: 'ns.example.com', ttl: 60, data: glue };
    const referral: packet.Packet = { type: 'response', id, questions, authorities: [ns], additionals: [address] };
    root.send(packet.encode(referral), peer.port, peer.address);
  });
  root.bind(0, '127.0.0.1');
  await once(root, 'listening');
  const dnsRoots = [`127.0.0.1:${(root.address() as AddressInfo).port}`];
  service = await startService({ settings: withConfig({ dnsRoots }) });
});
afterAll(async () => {
  await service?.close();
  root?.close();
});

test.each(ADDRESSES)('a zone above whose name server is at %s does not answer, and the service goes on', async (at) => {
  glue = at;
  const zone = await service.call('POST', '/v2/dns_zones', {
    body: { name: `a${at.replaceAll('.', '-')}.example.com` },
  });
  expect(zone.status).toBe(201);
  const before = asked;
  const { status, body } = await service.call('POST', `/v2/dns_zones/${zone.body.id}/verify`);
  expect([status, body.code, asked > before]).toEqual([502, 'provider_error', true]);
  expect((await service.call('GET', `/v2/dns_zones/${zone.body.id}`)).body.status).toBe('pending');
});

test('a secondary to which there is no way does not keep others from being told', async () => {
  const heard: Buffer[] = [];
  const good = createSocket('udp4', (message, peer) => {
    heard.push(message);
    // An answer that is too short to be one.
    good.send(Buffer.from([1]), peer.port, peer.address);
  });
  good.bind(0, '127.0.0.1');
  await once(good, 'listening');
  const { port } = good.address() as AddressInfo;
  const notifier = openNotifier(
    [...ADDRESSES.map((address) => ({ address, port: 53 })), { address: '127.0.0.1', port }],
    null,
  );
  try {
    notifier.notify('example.com');
    await waitFor('both attempts', async () => heard.length >= 2);
  } finally {
    notifier.close();
    good.close();
  }
});
