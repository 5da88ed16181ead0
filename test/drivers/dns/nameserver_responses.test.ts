// Responses that the embedded name server keeps: the same as a fresh one would be, whatever changed in between.
import { generateKeyPairSync } from 'node:crypto';
import * as packet from 'dns-packet';
import type { SigningKey } from '../../../core/protocols/dnssec';
import type { ZoneRecord, ZoneSpec } from '../../../engines/dns/nameserver';
import { newPacketKey, readPacketKey } from '../../../engines/dns/packet_cache';
import { openResponder, type Responder } from '../../../engines/dns/responder';

const DAY_MS = 86_400_000;
const CLIENT = '192.0.2.1';

const newKey = (role: SigningKey['role']): SigningKey => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { role, private_key: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64') };
};
const record = (type: ZoneRecord['type'], name: string, value: string): ZoneRecord => ({
  ...{ type, name, value },
  ttl: null,
});
const KEYS = [newKey('ksk'), newKey('zsk')];
const specOf = (name: string, records: ZoneRecord[], keys: SigningKey[] = []): ZoneSpec => ({
  ...{ name, serial: 1, default_ttl: 300, name_servers: ['ns1.example.net', 'ns2.example.net'], records, keys },
  soa: { email: 'hostmaster@example.com', refresh: 7200, retry: 3600, expire: 1_209_600, minimum: 60 },
});

let aliasAddresses: string[];
let responder: Responder;

beforeEach(() => {
  aliasAddresses = ['192.0.2.44'];
  responder = openResponder({
    responsesPerSecond: 1_000_000,
    lookUpAlias: () => ({ a: aliasAddresses.map((address) => Buffer.from(address.split('.').map(Number))), aaaa: [] }),
    transfers: { key: null, addresses: [] },
  });
  serve('dnz_1', specOf('example.com', [record('A', 'www', '192.0.2.10')]));
});
afterEach(() => jest.restoreAllMocks());

function serve(id: string, spec: ZoneSpec): void {
  responder.zones.put(id, spec.name, JSON.stringify(spec));
}

interface Asked {
  dnssec?: boolean;
  cookie?: Buffer;
  udpBytes?: number;
  id?: number;
}

function query(name: string, type: packet.RecordType, { dnssec, cookie, udpBytes, id = 7 }: Asked = {}): Buffer {
  const opt = {
    ...{ type: 'OPT', name: '.', udpPayloadSize: udpBytes ?? 1232, flags: dnssec ? packet.DNSSEC_OK : 0 },
    options: cookie ? [{ code: 10, data: cookie }] : [],
  };
  const additionals = (dnssec || cookie || udpBytes ? [opt] : []) as unknown as packet.Answer[];
  return packet.encode({
    type: 'query',
    id,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type, name }],
    additionals,
  });
}

function respond(message: Buffer): packet.DecodedPacket & { rcode: string } {
  const response = responder.respond(message, CLIENT, 'udp');
  if (!Buffer.isBuffer(response)) throw new Error('no response');
  return packet.decode(response) as never;
}

function addressesOf(name: string): string[] {
  return (respond(query(name, 'A')).answers ?? []).flatMap((one) => (one.type === 'A' ? [one.data] : []));
}

function statusOf(name: string): string {
  return respond(query(name, 'A')).rcode;
}

test('a change of the zone is answered at once', () => {
  for (let turn = 0; turn < 2; turn += 1) expect(addressesOf('www.example.com')).toEqual(['192.0.2.10']);
  serve('dnz_1', specOf('example.com', [record('A', 'www', '192.0.2.11')]));
  expect(addressesOf('www.example.com')).toEqual(['192.0.2.11']);
});

test('a zone below another one takes its names over, and gives them back', () => {
  for (let turn = 0; turn < 2; turn += 1) expect(statusOf('a.below.example.com')).toBe('NXDOMAIN');
  serve('dnz_2', specOf('below.example.com', [record('A', 'a', '192.0.2.12')]));
  expect(addressesOf('a.below.example.com')).toEqual(['192.0.2.12']);
  responder.zones.remove('dnz_2');
  expect(statusOf('a.below.example.com')).toBe('NXDOMAIN');
});

test('a zone that is removed is refused', () => {
  for (let turn = 0; turn < 2; turn += 1) expect(statusOf('www.example.com')).toBe('NOERROR');
  responder.zones.remove('dnz_1');
  expect(statusOf('www.example.com')).toBe('REFUSED');
});

test.each(['flat.example.com', 'to-flat.example.com', 'any.wild.example.com'])(
  'other addresses behind an ALIAS are answered for %s',
  (name) => {
    const flat = ['flat', '*.wild'].map((owner) => record('ALIAS', owner, 'target.example.net'));
    const records = [...flat, record('CNAME', 'to-flat', 'flat.example.com')];
    serve('dnz_1', specOf('example.com', records));
    for (let turn = 0; turn < 2; turn += 1) expect(addressesOf(name)).toEqual(['192.0.2.44']);
    aliasAddresses = ['192.0.2.45'];
    expect(addressesOf(name)).toEqual(['192.0.2.45']);
  },
);

test('each client gets its id, the case of its question and its own flags', () => {
  for (const [id, name] of [
    [1, 'www.example.com'],
    [2, 'WwW.eXample.COM'],
    [3, 'www.example.com'],
  ] as const) {
    const answer = respond(query(name, 'A', { id }));
    expect([answer.id, answer.questions?.[0]?.name]).toEqual([id, name]);
    expect(answer.flag_rd).toBe(true);
  }
  const plain = query('www.example.com', 'A');
  plain.writeUInt16BE(0x0010, 2);
  expect(respond(plain)).toMatchObject({ flag_rd: false, flag_cd: true });
});

test('a client with a cookie gets one for its address, and what is kept has none', () => {
  const cookie = Buffer.from('0123456789abcdef', 'hex');
  const optionsOf = (message: Buffer): Buffer[] =>
    ((respond(message).additionals ?? []) as unknown as { options: { data: Buffer }[] }[]).flatMap(({ options }) =>
      options.map(({ data }) => data),
    );
  for (let turn = 0; turn < 2; turn += 1) {
    const [reply] = optionsOf(query('www.example.com', 'A', { cookie }));
    expect(reply).toHaveLength(24);
    expect(reply?.subarray(0, 8)).toEqual(cookie);
    expect(optionsOf(query('www.example.com', 'A', { udpBytes: 1232 }))).toEqual([]);
    expect(addressesOf('www.example.com')).toEqual(['192.0.2.10']);
  }
});

test('what fits one client is cut short for another', () => {
  const records = [record('TXT', 'long', 'x'.repeat(900))];
  serve('dnz_1', specOf('example.com', records));
  const cookie = Buffer.alloc(8, 1);
  for (let turn = 0; turn < 2; turn += 1) {
    expect(respond(query('long.example.com', 'TXT', { udpBytes: 1232 })).flag_tc).toBe(false);
    expect(respond(query('long.example.com', 'TXT', { udpBytes: 700 })).flag_tc).toBe(true);
    expect(respond(query('long.example.com', 'TXT')).flag_tc).toBe(true);
    // 966 bytes, and 28 of the cookie.
    expect(respond(query('long.example.com', 'TXT', { udpBytes: 980 })).flag_tc).toBe(false);
    expect(respond(query('long.example.com', 'TXT', { udpBytes: 980, cookie })).flag_tc).toBe(true);
  }
});

test('a query of the usual form is read as the codec reads it', () => {
  const key = newPacketKey();
  expect(readPacketKey(query('www.example.com', 'A', { dnssec: true }), false, key)).toBe(true);
  const good = query('www.example.com', 'A');
  const damaged = [good.subarray(0, 20), Buffer.concat([good, Buffer.from([0])]), good.subarray(0, good.length - 1)];
  for (const message of damaged) expect(readPacketKey(message, false, key)).toBe(false);
});

describe('signatures', () => {
  const signedAt = (): { from: number; until: number } => {
    const { answers = [] } = respond(query('www.example.com', 'A', { dnssec: true }));
    const found = answers.find(({ type }) => type === 'RRSIG') as unknown as {
      data: { inception: number; expiration: number };
    };
    return { from: found.data.inception * 1000, until: found.data.expiration * 1000 };
  };
  const setClock = (now: number): unknown => jest.spyOn(Date, 'now').mockReturnValue(now);
  const start = Date.UTC(2030, 0, 1);

  beforeEach(() => {
    setClock(start);
    serve('dnz_1', specOf('example.com', [record('A', 'www', '192.0.2.10')], KEYS));
  });

  test('live for 14 days, and are renewed five days before their end', () => {
    const first = signedAt();
    expect(first).toEqual({ from: start - 3_600_000, until: start + 14 * DAY_MS });
    setClock(start + 8 * DAY_MS);
    expect(signedAt()).toEqual(first);
    setClock(start + 9 * DAY_MS + 1_000);
    expect(signedAt().until).toBe(start + 23 * DAY_MS + 1_000);
  });

  test('that were made while the clock was ahead are made anew once it is right', () => {
    setClock(start + 60 * DAY_MS);
    expect(signedAt().from).toBeGreaterThan(start);
    setClock(start);
    const { from, until } = signedAt();
    expect(from).toBeLessThan(start);
    expect(until).toBe(start + 14 * DAY_MS);
  });

  test('that were made while the clock was behind are made anew once it is right', () => {
    setClock(start - 60 * DAY_MS);
    signedAt();
    setClock(start);
    expect(signedAt().until).toBe(start + 14 * DAY_MS);
  });

  test('of sets and of the chain that a change leaves as they are stay the same', () => {
    const records = [record('A', 'www', '192.0.2.10'), record('A', 'zzz', '192.0.2.11')];
    serve('dnz_1', specOf('example.com', records, KEYS));
    const denialOf = (name: string): Buffer => {
      const { authorities = [] } = respond(query(name, 'AAAA', { dnssec: true }));
      const found = authorities.filter(({ type }) => type === 'RRSIG').map((one) => one as unknown as Signed);
      return found.find(({ data }) => data.typeCovered === 'NSEC')?.data.signature as Buffer;
    };
    const kept = denialOf('zzz.example.com');
    const next = [...records, record('A', 'aaa', '192.0.2.12')];
    serve('dnz_1', { ...specOf('example.com', next, KEYS), serial: 2 });
    expect(denialOf('zzz.example.com').equals(kept)).toBe(true);
  });
});

interface Signed {
  data: { typeCovered: string; signature: Buffer };
}

interface Raw {
  name: string;
  type: string;
}

const sectionOf = (records: packet.Answer[] | undefined): string[] =>
  ((records ?? []) as Raw[]).map(({ name, type }) => `${name} ${type}`.replace('UNKNOWN_', 'TYPE'));

test('SVCB and HTTPS come with the addresses of their targets, and with the set that an alias leads to', () => {
  serve(
    'dnz_1',
    specOf('example.com', [
      ...[record('HTTPS', '@', '1 . alpn=h2'), record('A', '@', '192.0.2.1'), record('AAAA', '@', '2001:db8::1')],
      ...[record('HTTPS', 'alias', '0 svc.example.com'), record('HTTPS', 'svc', '1 . port=8443')],
      ...[record('A', 'svc', '192.0.2.2'), record('SVCB', '_dns', '1 elsewhere.example.net alpn=dot')],
    ]),
  );
  const ask = (name: string, type: number): packet.DecodedPacket =>
    respond(query(name, `UNKNOWN_${type}` as packet.RecordType));
  expect(sectionOf(ask('example.com', 65).additionals)).toEqual(['example.com A', 'example.com AAAA']);
  expect(sectionOf(ask('alias.example.com', 65).additionals)).toEqual(['svc.example.com A', 'svc.example.com TYPE65']);
  expect(sectionOf(ask('_dns.example.com', 64).answers)).toEqual(['_dns.example.com TYPE64']);
  expect(sectionOf(ask('_dns.example.com', 64).additionals)).toEqual([]);
  expect(sectionOf(ask('www.example.com', 65).answers)).toEqual([]);
});

test('a referral has the DS of the delegation, signed', () => {
  const ds = `1 13 2 ${'AB'.repeat(32)}`;
  const records = [record('NS', 'below', 'ns.below.example.com'), record('DS', 'below', ds)];
  serve('dnz_1', specOf('example.com', [...records, record('A', 'ns.below', '192.0.2.5')], KEYS));
  const referral = respond(query('www.below.example.com', 'A', { dnssec: true }));
  expect(sectionOf(referral.authorities)).toEqual([
    'below.example.com NS',
    'below.example.com DS',
    'below.example.com RRSIG',
  ]);
  const answer = respond(query('below.example.com', 'DS'));
  expect([sectionOf(answer.answers), answer.flag_aa]).toEqual([['below.example.com DS'], true]);
});
