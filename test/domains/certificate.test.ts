// Certificates of custom domains: what they need, when they are renewed, and what is shown while there is none.
import { X509Certificate } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findChallenge } from '../../models/domains/certificate';
import { openCertificateBench, type CertificateBench } from '../support/ingress/certificates';
import { domainsPath } from '../support/dns/domains';
import { openPebble, type Pebble } from '../support/ingress/pebble';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

/** The authority has suggested no time, and is not asked for one. */
const NO_WINDOW = `renewal = '{"ask_at": "2999-01-01T00:00:00Z"}'`;

let bench: CertificateBench;

beforeAll(async () => (bench = await openCertificateBench()));
afterEach(() => bench?.rest());
afterAll(() => bench?.close());

describe('without an authority', () => {
  test('there is no certificate', async () => {
    bench.work(null);
    await bench.active('www.none.example');
    await waitFor('the pause', async () => (await bench.pause('www.none.example')) > 3_000, 15_000);
    expect((await bench.find('www.none.example')).certificate).toEqual({
      status: 'none',
      issuer: null,
      expires_at: null,
      error: null,
    });
    expect(await bench.served('www.none.example')).toBeNull();
  });

  test('a wildcard says why it has none', async () => {
    bench.work({ directory: 'http://127.0.0.1:1/dir', caFile: null });
    await bench.active('*.wild.example');
    expect((await bench.until('*.wild.example', { status: 'failed' })).certificate.error).toMatch(
      /wildcard needs a DNS challenge/,
    );
  });

  test('challenges are answered for tokens alone', async () => {
    const { database } = bench.service.platform;
    for (const token of ['unknown', '\0', '../../x', 'a'.repeat(1000)])
      expect(await findChallenge(database, token)).toBeNull();
  });

  test('an authority that asks to wait is heeded, and quoted', async () => {
    const answer = JSON.stringify({
      type: 'urn:ietf:params:acme:error:rateLimited',
      detail: 'too many certificates already issued',
      status: 429,
    });
    const busy = createServer((_, response) =>
      response.writeHead(429, { 'Retry-After': '7200', 'Content-Type': 'application/problem+json' }).end(answer),
    );
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
    try {
      bench.work({ directory: `http://127.0.0.1:${(busy.address() as AddressInfo).port}/dir`, caFile: null });
      await bench.active('www.busy.example');
      const { certificate } = await bench.until('www.busy.example', { status: 'failed' });
      expect(certificate.error).toBe(
        'The certificate authority accepts no more requests at the moment: too many certificates already issued.',
      );
      expect(Math.round((await bench.pause('www.busy.example')) / 60)).toBe(120);
    } finally {
      busy.close();
    }
  });
});

// CI installs pebble: there its absence is a failure.
const { describe: withPebble } = needs('pebble', 'openssl');

withPebble('with an authority', () => {
  let pebble: Pebble;

  beforeAll(async () => {
    pebble = await openPebble({ httpPort: bench.httpPort, dns: bench.dns.address, validSeconds: 604_800 });
    await pebble.start();
  });

  afterAll(() => pebble?.close());

  const serialOf = async (hostname: string): Promise<string> =>
    new X509Certificate((await bench.served(hostname))?.chain ?? '').serialNumber;

  test('a domain that becomes active gets a certificate, and a TLS client sees it', async () => {
    const told = bench.heard();
    const before = await bench.active('www.shop.example');
    const stateOf = async (): Promise<{ version: number; observed_generation: number }> =>
      (await bench.service.sql('select version, observed_generation from domains where id = $1', [before.id]))[0];
    const first = await stateOf();
    bench.work(pebble);
    const domain = await bench.until('www.shop.example', { status: 'issued', error: null });
    expect(domain.certificate.issuer).toMatch(/^Pebble Intermediate CA/);
    const seen = await bench.handshake('www.shop.example', await pebble.root());
    expect(seen.subjectaltname).toBe('DNS:www.shop.example');
    expect(new Date(seen.valid_to).toISOString()).toBe(domain.certificate.expires_at);
    expect(bench.asked.length).toBeGreaterThan(0);
    expect(await bench.service.sql('select 1 from acme_challenges')).toEqual([]);
    // Observed, not desired: the ETag moves, the version and its time do not.
    const last = await stateOf();
    expect([last.version, last.observed_generation > first.observed_generation, domain.updated_at]).toEqual([
      first.version,
      true,
      before.updated_at,
    ]);
    expect(told.names).toEqual(['www.shop.example']);
    await told.close();
  });

  test('no private key stands in a row or in the log', async () => {
    const rows = await bench.service.sql<{ row: string }>(
      `select c::text as row from certificates c union all select a::text from acme_accounts a union all
        select d::text from domains d`,
    );
    expect(rows.filter(({ row }) => row.includes('CERTIFICATE'))).toHaveLength(1);
    expect(rows.filter(({ row }) => /PRIVATE KEY|MIGHAgEA/.test(row))).toEqual([]);
    expect(
      await bench.service.sql(`select 1 from acme_accounts where authority = $1 and key like 'v1.%'`, [
        pebble.directory,
      ]),
    ).toHaveLength(1);
    const key = (await bench.served('www.shop.example'))?.key ?? '';
    expect(key).toContain('BEGIN PRIVATE KEY');
    const secret = key.split('\n')[1] as string;
    expect(bench.logged.filter((line) => line.includes(secret) || line.includes('PRIVATE KEY'))).toEqual([]);
  });

  test('it is renewed after two thirds of its lifetime, and not before', async () => {
    const first = await serialOf('www.shop.example');
    bench.work(pebble);
    await bench.due(
      'www.shop.example',
      `${NO_WINDOW}, issued_at = now() - interval '4 days', expires_at = now() + interval '3 days'`,
    );
    await waitFor('the pause', async () => (await bench.pause('www.shop.example')) > 3_600, 15_000);
    expect(await serialOf('www.shop.example')).toBe(first);
    await bench.due(
      'www.shop.example',
      `${NO_WINDOW}, issued_at = now() - interval '5 days', expires_at = now() + interval '2 days'`,
    );
    await waitFor('another certificate', async () => (await serialOf('www.shop.example')) !== first, 15_000);
    await bench.until('www.shop.example', { status: 'issued', error: null });
    // The ingress was told to forget the old one.
    const serial = await serialOf('www.shop.example');
    await waitFor(
      'the certificate at the ingress',
      async () => (await bench.handshake('www.shop.example', await pebble.root())).serialNumber === serial,
      15_000,
    );
  });

  test('an authority that is away: a reason, growing pauses, and all well when it is back', async () => {
    await pebble.stop();
    bench.work(pebble);
    await bench.active('www.away.example');
    const { certificate } = await bench.until('www.away.example', { status: 'failed' });
    expect(certificate.error).toBe(
      'The certificate authority is not available (ECONNREFUSED). The platform tries again.',
    );
    expect(Math.round((await bench.pause('www.away.example')) / 60)).toBe(1);
    await bench.due('www.away.example');
    await waitFor('the pause', async () => (await bench.pause('www.away.example')) > 100, 15_000);
    expect(Math.round((await bench.pause('www.away.example')) / 60)).toBe(4);
    await pebble.start();
    await bench.due('www.away.example');
    await bench.until('www.away.example', { status: 'issued', error: null });
    expect(await bench.service.sql(`select attempts from certificates where id = 'www.away.example'`)).toEqual([
      { attempts: 0 },
    ]);
  });

  test('while a renewal fails the old one is served and shown, until its end', async () => {
    await pebble.stop();
    bench.work(pebble);
    await bench.due(
      'www.away.example',
      `${NO_WINDOW}, issued_at = now() - interval '5 days', expires_at = now() + interval '2 days'`,
    );
    await bench.until('www.away.example', { status: 'issued', error: expect.stringContaining('ECONNREFUSED') });
    await bench.due('www.away.example', `expires_at = now() - interval '1 minute'`);
    await bench.until('www.away.example', { status: 'failed', error: expect.stringContaining('ECONNREFUSED') });
    expect(await bench.served('www.away.example')).not.toBeNull();
    await pebble.start();
  });

  test('what the authority found wrong is told in plain words', async () => {
    const elsewhere = createServer((_, response) => response.writeHead(200).end('somebody else'));
    await new Promise<void>((resolve) => elsewhere.listen(bench.httpPort, '127.0.0.9', resolve));
    await bench.active('www.astray.example');
    // After our check, before that of the authority.
    bench.dns.set('ingress.example.net', 'A', ['127.0.0.9']);
    try {
      bench.work(pebble);
      const { certificate } = await bench.until('www.astray.example', { status: 'failed' });
      const reason =
        'The host name does not lead to this platform: the certificate authority got the answer of another server: ';
      expect(certificate.error).toMatch(new RegExp(`^${reason}.*somebody else`));
    } finally {
      bench.dns.set('ingress.example.net', 'A', ['127.0.0.1']);
      elsewhere.close();
    }
  });

  test('a domain without its records is not ordered for', async () => {
    const asked = bench.asked.length;
    const { id } = await bench.active('www.lost.example');
    await bench.service.sql('update domains set missing_since = now(), next_at = null where id = $1', [id]);
    bench.work(pebble);
    await waitFor('the pause', async () => (await bench.pause('www.lost.example')) > 300, 15_000);
    expect((await bench.find('www.lost.example')).certificate.status).toBe('none');
    expect(bench.asked).toHaveLength(asked);
  });

  test('another authority issues anew', async () => {
    const first = await serialOf('www.shop.example');
    await bench.service.sql(
      `update certificates set authority = 'https://staging.example.net/dir' where id = 'www.shop.example'`,
    );
    bench.work(pebble);
    await bench.due('www.shop.example');
    await waitFor('another certificate', async () => (await serialOf('www.shop.example')) !== first, 15_000);
  });

  test('a sealed key opens at its own host name alone', async () => {
    await bench.service.sql(
      `update certificates c set chain = o.chain, key = o.key from certificates o
        where c.id = 'www.none.example' and o.id = 'www.shop.example'`,
    );
    await expect(bench.served('www.none.example')).rejects.toThrow(/altered, or belongs elsewhere/);
  });

  test('an authority that is not trusted is not used', async () => {
    bench.work({ directory: pebble.directory, caFile: null });
    await bench.active('www.untrusted.example');
    expect((await bench.until('www.untrusted.example', { status: 'failed' })).certificate.error).toMatch(/SELF_SIGNED/);
  });

  test('a removed domain takes its certificate along', async () => {
    const told = bench.heard();
    const { id } = await bench.find('www.shop.example');
    await bench.service.sql(
      `insert into acme_challenges (token, key_authorization, certificate_id)
        values ('left', 'left.over', 'www.shop.example')`,
    );
    bench.work(pebble);
    await bench.service.call('DELETE', domainsPath(bench.application, id));
    await waitFor('the notice', () => told.names.length > 0, 15_000);
    expect(told.names).toEqual(['www.shop.example']);
    expect(
      await bench.service.sql(
        `select id from certificates where id = 'www.shop.example' union all select token from acme_challenges`,
      ),
    ).toEqual([]);
    await told.close();
  });
});
