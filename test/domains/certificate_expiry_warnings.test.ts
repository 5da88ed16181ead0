// Certificates that nobody manages to renew: told once while there is time, with an end.
import { certificateFigures, warnOfCertificates } from '../../models/domains/certificate/expiry_warnings';
import { ensureOwnCertificates } from '../../models/domains/certificate/desired';
import { waitingMails } from '../../models/base/mail_outbox';
import { openCertificateBench, type CertificateBench } from '../support/ingress/certificates';

let bench: CertificateBench;

beforeAll(async () => {
  bench = await openCertificateBench({
    ...{ ACME_DIRECTORY: 'http://127.0.0.1:1/dir', ACME_EMAIL: 'ops@example.net' },
    ...{ INGRESS_TLS_PORT: '443', INGRESS_PORT: '80', SMTP_PORTS: '2525' },
  });
});
afterAll(() => bench?.close());

describe('trouble', () => {
  const warn = async (): Promise<number> => {
    const { database, config, secrets } = bench.service.platform;
    return warnOfCertificates(database, 100, { config, secrets });
  };
  const mails = async (): Promise<string[][]> => {
    const { database, secrets } = bench.service.platform;
    const waiting = await waitingMails(database, secrets, 10);
    await bench.service.sql('delete from email_outbox');
    return waiting.map(({ mail }) => ('lines' in mail ? [...mail.lines] : []));
  };

  beforeAll(async () => {
    await bench.service.sql('delete from certificates');
    await mails();
    await ensureOwnCertificates(bench.service.platform.database, ['console.example.net']);
    await bench.service.sql('update certificates set next_at = null');
  });

  const put = (sets: string): Promise<unknown> =>
    bench.service.sql(`update certificates set ${sets} where id = 'console.example.net'`);

  test('a name without a certificate is told after an hour, once', async () => {
    await put(`reason = 'The authority is away.', reason_since = now() - interval '50 minutes'`);
    expect(await warn()).toBe(0);
    await put(`reason_since = now() - interval '70 minutes'`);
    expect([await warn(), await warn()]).toEqual([1, 0]);
    expect(await mails()).toEqual([
      ['console.example.net has no certificate. The authority is away.', '`platform doctor` shows the present state.'],
    ]);
  });

  test('one that ends within 14 days too, and that it is in order again', async () => {
    await put(`chain = 'PEM', key = 'x', reason = null, reason_since = null, issued_at = now() - interval '75 days',
      expires_at = now() + interval '15 days'`);
    expect(await warn()).toBe(1);
    expect(await mails()).toEqual([['The certificate of console.example.net is in order again.']]);
    await put(`expires_at = now() + interval '13 days', reason = 'Port 80 is closed.'`);
    expect([await warn(), await warn()]).toEqual([1, 0]);
    expect((await mails())[0]?.[0]).toMatch(
      /^The certificate of console\.example\.net ends on .* UTC\. Port 80 is closed\.$/,
    );
  });

  test.each([
    ['6 days', '1.7 days', 1],
    ['6 days', '1.9 days', 0],
    ['45 days', '13 days', 1],
    ['45 days', '14 days', 0],
    ['90 days', '14.5 days', 0],
  ])('of a life of %s, %s before the end it is told: %d', async (life, left, told) => {
    await put(`warned_at = null, expires_at = now() + interval '${left}',
      issued_at = now() + interval '${left}' - interval '${life}'`);
    expect(await warn()).toBe(told);
    await mails();
  });

  test('the project hears of its own by its activity', async () => {
    const id = await bench.domains.newApplication('ending');
    await bench.service.sql(
      `update certificates set chain = 'PEM', key = 'x', issued_at = now() - interval '80 days',
        expires_at = now() + interval '10 days', next_at = null where application_id = $1`,
      [id],
    );
    await warn();
    await bench.service.sql(
      `update certificates set expires_at = now() + interval '90 days' where application_id = $1`,
      [id],
    );
    await warn();
    const { body } = await bench.service.call(
      'GET',
      `/v2/projects/${bench.service.project}/activity?resource_id=${id}`,
    );
    expect(body.data.map(({ action }: { action: string }) => action)).toEqual(
      expect.arrayContaining(['application.certificate_expiring', 'application.certificate_renewed']),
    );
    expect(await mails()).toEqual([]);
  });

  test('nobody is told of those of previews', async () => {
    const id = await bench.domains.newApplication('previewed');
    await bench.service.sql(
      `with made as (insert into previews (id, project_id, application_id, branch, hostname, created_by, created_at,
          updated_at) select 'pvw_ending', project_id, id, 'main', 'pvw.example.net',
          '{"type": "system", "id": null, "name": "Platform"}', now(), now() from applications where id = $1
          returning id, hostname)
        insert into certificates (id, preview_id, chain, key, issued_at, expires_at, next_at)
          select hostname, id, 'PEM', 'x', now() - interval '80 days', now() + interval '10 days', null from made`,
      [id],
    );
    await warn();
    expect(await mails()).toEqual([]);
  });

  test('figures name those of the platform, and count others', async () => {
    const { own, counts } = await certificateFigures(bench.service.platform.database);
    expect(own.map(({ id }) => id)).toEqual(['console.example.net']);
    expect(counts).toContainEqual({ kind: 'application', state: 'good', count: 1 });
  });
});
