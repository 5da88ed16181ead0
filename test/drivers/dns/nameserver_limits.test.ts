// Response-rate limiting and DNS cookies of the embedded name server: nobody is flooded through it, and nothing is
// signed for a flood.
import type * as crypto from 'node:crypto';
import { generateKeyPairSync } from 'node:crypto';
import * as packet from 'dns-packet';
import type { SigningKey } from '../../../core/protocols/dnssec';
import type { ZoneSpec } from '../../../engines/dns/nameserver';
import { openResponder } from '../../../engines/dns/responder';

const NOBODY = { key: null, addresses: [] };
const newKey = (role: SigningKey['role']): SigningKey => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
};

const SPEC: ZoneSpec = {
  ...{ name: 'example.com', serial: 1, default_ttl: 3600, name_servers: ['ns1.example.net'] },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
  records: [{ type: 'A', name: 'www', value: '192.0.2.1', ttl: null }],
  keys: [newKey('ksk'), newKey('zsk')],
};

type Response = packet.DecodedPacket & { rcode: string };
const decode = (bytes: Buffer): Response => packet.decode(bytes) as unknown as Response;

function query(name: string, type: string, more: object = {}): Buffer {
  const questions = [{ type, name }] as packet.Question[];
  return packet.encode({ type: 'query', id: 7, flags: 0, questions, ...more });
}

afterEach(() => jest.restoreAllMocks());

test('a response gets no answer', () => {
  const responder = openResponder({ responsesPerSecond: 1, lookUpAlias: () => null, transfers: NOBODY });
  const message = query('www.example.com', 'A');
  message[2] = 0x80;
  expect(responder.respond(message, '192.0.2.1', 'udp')).toBeNull();
});

test('beyond the limit of a network nothing is signed: answers are cut short or dropped', () => {
  jest.spyOn(performance, 'now').mockReturnValue(1_000);
  const signed = jest.spyOn(jest.requireActual<typeof crypto>('node:crypto'), 'sign');
  const responder = openResponder({ responsesPerSecond: 3, lookUpAlias: () => null, transfers: NOBODY });
  responder.zones.put('dnz_wire', SPEC.name, JSON.stringify(SPEC));
  const opt = { type: 'OPT', name: '.', udpPayloadSize: 1232, flags: packet.DNSSEC_OK, options: [] };
  const asked = (number: number, address: string, transport: 'udp' | 'tcp', more: object = opt): Response | null => {
    const message = query(`a${number}.b.example.com`, 'A', { additionals: [more] });
    const response = responder.respond(message, address, transport);
    return response ? decode(response as Buffer) : null;
  };
  for (let number = 0; number < 3; number += 1)
    expect(asked(number, `192.0.2.${number}`, 'udp')).toMatchObject({ rcode: 'NXDOMAIN', flag_tc: false });
  expect(signed).toHaveBeenCalled();
  signed.mockClear();
  responder.zones.put('dnz_wire', SPEC.name, JSON.stringify({ ...SPEC, serial: 2 }));
  const limited = Array.from({ length: 6 }, (_, number) => asked(number, '192.0.2.200', 'udp'));
  expect(limited.map((one) => one && [one.flag_tc, one.answers?.length, one.authorities?.length])).toEqual([
    ...[null, [true, 0, 0], null, [true, 0, 0], null, [true, 0, 0]],
  ]);
  expect(signed).not.toHaveBeenCalled();
  // Others are answered: another network, the same one over TCP, and a client with a cookie of ours.
  expect(asked(1, '198.51.100.1', 'udp')).toMatchObject({ rcode: 'NXDOMAIN', flag_tc: false });
  expect(asked(1, '192.0.2.200', 'tcp')).toMatchObject({ rcode: 'NXDOMAIN' });
  const cookieOf = (found: Response | null): Buffer =>
    (found?.additionals as unknown as { options: { data: Buffer }[] }[] | undefined)?.[0]?.options[0]?.data as Buffer;
  const withCookie = (data: Buffer): object => ({ ...opt, options: [{ code: 10, data }] });
  const cookie = cookieOf(asked(1, '192.0.2.200', 'tcp', withCookie(Buffer.alloc(8, 7))));
  expect(asked(1, '192.0.2.200', 'udp', withCookie(cookie))).toMatchObject({ rcode: 'NXDOMAIN', flag_tc: false });
  // It is for that address alone: from another one of the network it is worth nothing.
  expect(asked(1, '192.0.2.201', 'udp', withCookie(cookie))?.rcode).not.toBe('NXDOMAIN');
});
