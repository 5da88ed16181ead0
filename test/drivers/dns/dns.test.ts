import { dnsQuestions } from '../../../core/protocols/dns';
import type { DnsQuestions } from '../../../core/protocols/dns';
import { startDnsServer } from '../../support/dns/dns_server';
import type { DnsServer } from '../../support/dns/dns_server';

let server: DnsServer;
let ask: DnsQuestions;

beforeAll(async () => {
  server = await startDnsServer({
    'example.com A': ['192.0.2.7', '192.0.2.10'],
    'example.com AAAA': ['2001:DB8::7'],
    'example.com NS': ['NS2.Example.net.', 'ns1.example.net.'],
    'www.example.com CNAME': ['Ingress.Example.NET.'],
    'ingress.example.net A': ['192.0.2.1'],
    '_svc-verify.example.com TXT': ['svc-Verify=AbC', 'x'.repeat(300)],
  });
  ask = dnsQuestions({ resolvers: [server.address] });
});

afterAll(() => server.close());

test('addresses', async () => {
  expect(await ask.a('example.com')).toEqual(['192.0.2.10', '192.0.2.7']);
  expect(await ask.aaaa('example.com')).toEqual(['2001:db8::7']);
});

test('addresses through a CNAME', async () => {
  expect(await ask.a('www.example.com')).toEqual(['192.0.2.1']);
});

test('names come folded and without the trailing dot', async () => {
  expect(await ask.cname('WWW.example.com')).toEqual(['ingress.example.net']);
  expect(await ask.ns('example.com')).toEqual(['ns1.example.net', 'ns2.example.net']);
});

test('texts come as they are, their strings joined', async () => {
  expect(await ask.txt('_svc-verify.example.com')).toEqual(['svc-Verify=AbC', 'x'.repeat(300)]);
});

test('no such name and no such record are empty answers', async () => {
  expect(await ask.a('nothing.example.com')).toEqual([]);
  expect(await ask.txt('example.com')).toEqual([]);
});

test('a later change is seen at once', async () => {
  expect(await ask.txt('new.example.com')).toEqual([]);
  server.set('new.example.com', 'TXT', ['here']);
  expect(await ask.txt('new.example.com')).toEqual(['here']);
});

test('a server that fails is a transient error, not an empty answer', async () => {
  server.fail('broken.example.com');
  await expect(ask.a('broken.example.com')).rejects.toMatchObject({ name: 'DriverError', reason: 'transient' });
});

test('a server that keeps silent is a transient error within 5 s', async () => {
  server.ignore('silent.example.com');
  const begin = Date.now();
  await expect(ask.txt('silent.example.com')).rejects.toMatchObject({ reason: 'transient' });
  expect(Date.now() - begin).toBeLessThan(5_500);
});

test('nobody at the address is a transient error', async () => {
  const gone = await startDnsServer();
  await gone.close();
  await expect(dnsQuestions({ resolvers: [gone.address] }).a('example.com')).rejects.toMatchObject({
    reason: 'transient',
  });
});

test('what is no name is an invalid question', async () => {
  await expect(ask.a(`${'a'.repeat(64)}.example.com`)).rejects.toMatchObject({ reason: 'invalid' });
  await expect(ask.a('a..example.com')).rejects.toMatchObject({ reason: 'invalid' });
});
