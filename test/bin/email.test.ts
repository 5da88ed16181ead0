// Deleted sending domains and relay zones: no mail is taken, and the same keys and passwords work after a restore.
import { binCalls } from '../support/bin_calls';
import { freePort } from '../support/processes/free_port';
import { openMailBench, type MailBench } from '../support/email/mail';
import { startMailReceiver, type MailReceiver } from '../support/email/mail_receiver';
import { smtpDialogue } from '../support/email/smtp_dialogue';
import type { TestService } from '../support/service';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let bench: MailBench;
let service: TestService;
let receiver: MailReceiver;
let port: number;
const bin = binCalls(() => service);

beforeAll(async () => {
  receiver = await startMailReceiver();
  port = await freePort();
  const settings = {
    ...{ SMTP_PORTS: String(port), MX_PORT: String(await freePort()) },
    ...{ SMTP_URL: `smtp://127.0.0.1:${receiver.port}`, RETENTION_OF_DELETED_DAYS: '7' },
  };
  bench = await openMailBench({ worker: true, settings });
  ({ service } = bench);
});
afterAll(async () => {
  await bench?.close();
  await receiver?.close();
});

const placeOf = ({ id }: any): string =>
  id.startsWith('erz') ? `/v2/email_relay_zones/${id}` : `/v2/email_domains/${id}`;
const get = async (of: any): Promise<any> => (await service.call('GET', placeOf(of))).body;
const rowsOf = async ({ id }: any): Promise<number> =>
  (
    await service.sql(
      `select id from email_domains where id = $1 union all select id from email_relay_zones where id = $1`,
      [id],
    )
  ).length;

const LOGIN_REFUSED = /^535 5\.7\.8/;
/** @param end what is answered to the message, or to the login where that is refused */
async function send({ smtp_username, smtp_password }: any, from: string, end = /^250/, to = 'ada'): Promise<void> {
  const login = Buffer.from(`\0${smtp_username}\0${smtp_password}`).toString('base64');
  const refused = end === LOGIN_REFUSED;
  await smtpDialogue({ port, tls: true }, [
    ['EHLO client.example', /^250/],
    [`AUTH PLAIN ${login}`, refused ? end : /^235/],
    ...(refused
      ? []
      : ([
          [`MAIL FROM:<${from}>`, /^250/],
          [`RCPT TO:<${to}@receiver.example>`, /^250/],
          ['DATA', /^354/],
          [`From: ${from}\r\nTo: ${to}@receiver.example\r\nSubject: Hello\r\n\r\nHello.\r\n.`, end],
        ] as [string, RegExp][])),
  ]);
}

describe('a deleted relay zone', () => {
  it('takes no mail, and takes it with the same password after it was restored', async () => {
    const domain = await bench.verified();
    const zone = await bench.relayZone('kept', domain, { daily_limit: 50, allowed_sources: ['127.0.0.0/8'] });
    const from = `shop@${domain.name}`;
    await send(zone, from);
    const suppressed = { body: { email: 'bob@receiver.example' } };
    expect((await service.call('POST', `${placeOf(zone)}/suppressions`, suppressed)).status).toBe(201);
    const before = await get(zone);
    const entry = await bin.deleted(placeOf(zone));
    await send(zone, from, LOGIN_REFUSED);
    await bench.relayZone('kept', domain);
    const taken = await bin.restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'name_taken', 'name']);
    expect(await bin.restored(entry, { name: 'kept-before' })).toEqual([]);
    expect({ ...(await get(zone)), updated_at: null }).toEqual({ ...before, name: 'kept-before', updated_at: null });
    const list = (await service.call('GET', `${placeOf(zone)}/suppressions`)).body.data;
    expect(list.map(({ email }: any) => email)).toEqual(['bob@receiver.example']);
    await send(zone, from);
  });

  it('comes back after its sending domain only', async () => {
    const domain = await bench.verified();
    const zone = await bench.relayZone('second', domain);
    const entry = await bin.deleted(placeOf(zone));
    const parent = await bin.deleted(placeOf(domain));
    const early = await bin.restore(entry);
    expect([early.status, early.body.code, early.body.field]).toEqual([
      422,
      'reference_not_found',
      'email_domain_ids.0',
    ]);
    expect(await bin.restored(parent)).toEqual([]);
    expect(await bin.restored(entry)).toEqual([]);
    await send(zone, `shop@${domain.name}`);
  });

  it('is restored once, or purged with its suppressions', async () => {
    const domain = await bench.verified();
    const zone = await bench.relayZone('third', domain);
    const first = await bin.deleted(placeOf(zone));
    expect(await bin.race(bin.restore(first), bin.restore(first))).toEqual([200, 404]);
    const second = await bin.deleted(placeOf(zone));
    await bin.expire(second);
    await waitFor('its row goes', async () => (await rowsOf(zone)) === 0);
    expect((await bin.restore(second)).status).toBe(404);
  });
});

describe('a deleted sending domain', () => {
  it('has the same keys after it was restored, and sends at once', async () => {
    const domain = await bench.verified();
    const before = await get(domain);
    const entry = await bin.deleted(placeOf(domain));
    expect((await service.call('GET', placeOf(domain))).status).toBe(404);
    const refused = await service.call('POST', '/v2/email_relay_zones', {
      body: { name: 'late', email_domain_ids: [domain.id] },
    });
    expect([refused.status, refused.body.code]).toEqual([422, 'reference_not_found']);
    expect(await bin.restored(entry)).toEqual([]);
    const after = await get(domain);
    expect(after.status).toBe('verified');
    expect(after.dns_records.map(({ name, value }: any) => [name, value])).toEqual(
      before.dns_records.map(({ name, value }: any) => [name, value]),
    );
    const zone = await bench.relayZone('again', domain);
    await send(zone, `shop@${domain.name}`, undefined, 'signed');
    const mail = await receiver.mailTo('signed@receiver.example');
    expect((await receiver.judge(mail, bench.dns.address)).dkim).toEqual(['ed25519-sha256 pass', 'rsa-sha256 pass']);
  });

  it('is not restored where another project has verified the name, or the project has it again', async () => {
    const them = await bin.stranger();
    const domain = await bench.verified();
    const entry = await bin.deleted(placeOf(domain));
    const theirs = (await service.call('POST', '/v2/email_domains', { body: { name: domain.name }, ...them })).body;
    bench.publish(theirs.dns_records);
    expect((await service.call('POST', `${placeOf(theirs)}/verify`, them)).body.status).toBe('verified');
    const taken = await bin.restore(entry);
    expect([taken.status, taken.body.code, taken.body.field]).toEqual([409, 'domain_taken', 'name']);
    await service.call('DELETE', placeOf(theirs), them);
    const own = await bench.created(domain.name);
    const twice = await bin.restore(entry);
    expect([twice.status, twice.body.code, twice.body.field]).toEqual([409, 'domain_taken', 'name']);
    await bin.purge(await bin.deleted(placeOf(own)));
    expect(await bin.restored(entry)).toEqual([]);
    await bin.purge(await bin.deleted(placeOf(domain)));
    await waitFor('its row goes', async () => (await rowsOf(domain)) === 0);
  });
});
