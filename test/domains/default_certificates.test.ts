// Certificates of default host names: ordered when what they lead to is made, counted as the authority counts them, and
// gone with it.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ensureOwnCertificates } from '../../models/domains/certificate/desired';
import { openCertificateBench, type CertificateBench } from '../support/ingress/certificates';
import { openPebble, type Pebble } from '../support/ingress/pebble';
import { needs } from '../support/runner/programs';
import { waitFor } from '../support/wait_for';

jest.setTimeout(60_000);

let bench: CertificateBench;

beforeAll(async () => {
  bench = await openCertificateBench({
    ...{ ACME_DIRECTORY: 'http://127.0.0.1:1/dir', ACME_EMAIL: 'ops@example.net' },
    ...{ INGRESS_TLS_PORT: '443', INGRESS_PORT: '80', SMTP_PORTS: '2525' },
  });
});
afterEach(() => bench?.rest());
afterAll(() => bench?.close());

const LIMITS = { ordersPer3Hours: 300, certificatesPerWeek: 5, duplicatesPerWeek: 5, failuresPerHour: 5 };

interface Shown {
  default_hostname: string;
  url: string;
  certificate: { status: string; error: string | null; expires_at: string | null };
}

async function shown(id: string): Promise<Shown> {
  const { data } = await bench.service.graphql(
    `{ getApplication(id: "${id}") { default_hostname url certificate { status error expires_at } } }`,
  );
  return data.getApplication;
}

/** An application whose name the authority finds, and the ingress answers for. */
async function newApplication(name: string): Promise<{ id: string; hostname: string }> {
  const id = await bench.domains.newApplication(name);
  const { default_hostname: hostname } = await shown(id);
  bench.dns.set(hostname, 'A', ['127.0.0.1']);
  bench.route(hostname);
  return { id, hostname };
}

async function untilShown(id: string, expected: object): Promise<Shown> {
  let last: Shown | undefined;
  await waitFor(
    `the certificate of ${id}`,
    async () => {
      last = await shown(id);
      return Object.entries(expected).every(([key, value]) => last?.certificate[key as 'status'] === value);
    },
    20_000,
  ).catch((error: Error) => {
    throw new Error(`${error.message}: ${JSON.stringify(last)}\n${bench.logged.slice(-2).join('')}`);
  });
  return last as Shown;
}

test('without an order yet the address is http, and a certificate is pending', async () => {
  const { id, hostname } = await newApplication('plain');
  expect(await shown(id)).toMatchObject({ url: `http://${hostname}`, certificate: { status: 'pending', error: null } });
});

test('what an authority asks all to wait for is asked once', async () => {
  let asked = 0;
  const answer = JSON.stringify({
    type: 'urn:ietf:params:acme:error:rateLimited',
    detail: 'too many new orders (300) from this account in the last 3h0m0s',
  });
  const busy = createServer((_, response) => {
    asked += 1;
    response.writeHead(429, { 'Retry-After': '7200', 'Content-Type': 'application/problem+json' }).end(answer);
  });
  await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve));
  try {
    const names = await Promise.all(['one', 'two', 'three'].map(newApplication));
    await bench.service.sql('update certificates set next_at = null');
    bench.work({ directory: `http://127.0.0.1:${(busy.address() as AddressInfo).port}/dir`, caFile: null });
    for (const { id, hostname } of names) {
      await bench.due(hostname);
      const { certificate } = await untilShown(id, {
        error:
          'The certificate authority accepts no more requests at the moment: too many new orders (300) from this ' +
          'account in the last 3h0m0s.',
      });
      expect(['failed', 'pending']).toContain(certificate.status);
    }
    expect(asked).toBe(1);
  } finally {
    busy.close();
    await bench.service.sql('delete from acme_accounts');
    await bench.service.sql('delete from certificates');
  }
});

test('an authority that is away for hours uses up none of its limits', async () => {
  const { hostname } = await newApplication('waiting');
  bench.work({ directory: 'http://127.0.0.1:1/dir', caFile: null, limits: LIMITS });
  for (let turn = 0; turn < 7; turn += 1) {
    await waitFor('a step', async () => (await bench.pause(hostname)) > 30, 20_000);
    await bench.due(hostname);
  }
  await waitFor('the last step', async () => (await bench.pause(hostname)) > 30, 20_000);
  expect(await bench.service.sql('select outcome from certificate_orders where hostname = $1', [hostname])).toEqual([
    { outcome: 'open' },
  ]);
  await bench.service.sql('delete from certificates');
});

test('no account uses up what the authority gives to all of them', async () => {
  await bench.service.sql('delete from certificate_orders');
  const stranger = await bench.service.newProject({ stranger: true });
  // Nobody answers: what is placed stays open, and is counted.
  bench.work({ directory: 'http://127.0.0.1:1/dir', caFile: null, limits: { ...LIMITS, certificatesPerWeek: 10 } });
  const own = await Promise.all([1, 2, 3, 4, 5].map((number) => newApplication(`mine-${number}`)));
  const placed = async (): Promise<number> =>
    (await bench.service.sql('select 1 from certificate_orders where is_renewal = false')).length;
  await waitFor('four orders', async () => (await placed()) === 4, 20_000);
  const reasons = async (): Promise<string[]> =>
    (await Promise.all(own.map(({ id }) => shown(id)))).flatMap(({ certificate }) => certificate.error ?? []);
  await waitFor('the reason', async () =>
    (await reasons()).some((reason) =>
      reason.startsWith(
        'The certificate waits for its turn: one account gets 4 of the certificates of a week for example.net. Room is',
      ),
    ),
  );
  const options = { key: stranger.key, project: stranger.id };
  await bench.domains.newApplication('theirs', options);
  await waitFor('an order of the other', async () => (await placed()) === 5, 20_000);
  await bench.service.sql(
    `update accounts set status = 'suspended' where id in
    (select account_id from projects where id = $1)`,
    [stranger.id],
  );
  await bench.service.sql('update certificates set next_at = now() where chain is null');
  await waitFor('all of them', async () => (await placed()) === 6, 20_000);
  await bench.rest();
  await bench.service.sql('delete from certificates');
  await bench.service.sql('delete from certificate_orders');
});

needs('pebble', 'openssl').describe('with an authority', () => {
  let pebble: Pebble;

  beforeAll(async () => {
    await bench.service.sql('delete from certificate_orders');
    pebble = await openPebble({ httpPort: bench.httpPort, dns: bench.dns.address, validSeconds: 90 * 86_400 });
    await pebble.start();
  });
  afterAll(() => pebble?.close());

  const work = (): void => bench.work({ ...pebble, limits: LIMITS });

  test('a new application gets one, and its address is https once it is served', async () => {
    work();
    const { id, hostname } = await newApplication('first');
    expect(await untilShown(id, { status: 'issued', error: null })).toMatchObject({ url: `https://${hostname}` });
    expect((await bench.handshake(hostname, await pebble.root())).subjectaltname).toBe(`DNS:${hostname}`);
  });

  test('applications leave the last part of a limit to others, and say why they wait', async () => {
    const others = await Promise.all(['second', 'third', 'fourth'].map(newApplication));
    work();
    for (const { id } of others) await untilShown(id, { status: 'issued' });
    const { id, hostname } = await newApplication('fifth');
    await waitFor('the reason', async () => (await shown(id)).certificate.error !== null, 20_000);
    const { certificate, url } = await untilShown(id, { status: 'pending' });
    expect(certificate.error).toMatch(
      /^The certificate waits for its turn: the certificate authority issues 5 certificates in a week for example\.net/,
    );
    expect(certificate.error).toMatch(/Room is expected at \d{4}-\d\d-\d\d \d\d:\d\d UTC\.$/);
    expect(url).toBe(`http://${hostname}`);
    await ensureOwnCertificates(bench.service.platform.database, ['console.example.net']);
    bench.dns.set('console.example.net', 'A', ['127.0.0.1']);
    bench.route('console.example.net');
    await waitFor('the name of the platform', async () => bench.served('console.example.net'), 20_000);
    expect(await bench.service.sql(`select count(*)::int as n from certificate_orders`)).toEqual([{ n: 5 }]);
  });

  test('a renewal is placed although the limit is reached, and stays one order', async () => {
    const { hostname } = await newApplication('sixth');
    const [{ id: served }] = (await bench.service.sql<{ id: string }>(
      `select id from certificates where chain is not null and application_id is not null order by id limit 1`,
    )) as [{ id: string }];
    expect(served).not.toBe(hostname);
    const before = (await bench.served(served))?.chain;
    work();
    await bench.due(
      served,
      `renewal = '{"ask_at": "2999-01-01T00:00:00Z"}', issued_at = now() - interval '61 days',
        expires_at = now() + interval '29 days'`,
    );
    await waitFor('the renewal', async () => (await bench.served(served))?.chain !== before, 20_000);
    expect(
      await bench.service.sql(`select is_renewal, outcome from certificate_orders where hostname = $1 order by id`, [
        served,
      ]),
    ).toEqual([
      { is_renewal: false, outcome: 'issued' },
      { is_renewal: true, outcome: 'issued' },
    ]);
  });

  test('one failed check after the other does not use up what the authority bears', async () => {
    const id = await bench.domains.newApplication('astray');
    const { default_hostname: hostname } = await shown(id);
    await bench.service.sql('delete from certificate_orders');
    work();
    for (let turn = 0; turn < 6; turn += 1) {
      await waitFor(
        'a step',
        async () => {
          const [row] = await bench.service.sql<{ next: boolean }>(
            'select next_at > now() and lease_owner is null as next from certificates where id = $1',
            [hostname],
          );
          return row?.next;
        },
        20_000,
      );
      await bench.due(hostname);
    }
    const orders = await bench.service.sql('select 1 from certificate_orders where hostname = $1', [hostname]);
    expect(orders.length).toBeLessThanOrEqual(4);
    expect((await shown(id)).certificate.error).toMatch(/bears 5 failed checks of one name in an hour/);
  });

  test('names that the settings no longer have are dropped, with their certificates', async () => {
    await ensureOwnCertificates(bench.service.platform.database, []);
    expect(await bench.service.sql(`select 1 from certificates where id = 'console.example.net'`)).toEqual([]);
    expect(await bench.served('console.example.net')).toBeNull();
  });

  test('a deleted application takes its certificate along', async () => {
    const { id, hostname } = await newApplication('gone');
    await bench.service.sql('delete from applications where id = $1', [id]).catch(async () => {
      await bench.service.sql('delete from processes where application_id = $1', [id]);
      await bench.service.sql('delete from applications where id = $1', [id]);
    });
    expect(await bench.service.sql('select 1 from certificates where id = $1', [hostname])).toEqual([]);
  });

  test('a wildcard waits for a zone that is delegated here: one that somebody claims is not enough', async () => {
    const name = '*.apps.example.net';
    const zone = (await bench.service.call('POST', '/v2/dns_zones', { body: { name: 'example.net' } })).body;
    expect(zone.status).toBe('pending');
    await ensureOwnCertificates(bench.service.platform.database, [name]);
    work();
    await waitFor('the step', async () => (await bench.pause(name)) > 60, 20_000);
    expect(await bench.service.sql('select chain, reason, unfinished from certificates where id = $1', [name])).toEqual(
      [{ chain: null, reason: null, unfinished: null }],
    );
    const records = (await bench.service.call('GET', `/v2/dns_zones/${zone.id}/records`)).body.data;
    expect(records.filter((one: { name: string }) => one.name.startsWith('_acme'))).toEqual([]);
    // Nobody can claim the names below it at all.
    const below = await bench.service.call('POST', '/v2/dns_zones', {
      body: { name: '_acme-challenge.apps.example.net' },
    });
    expect(below.status).toBe(422);
  });
});
