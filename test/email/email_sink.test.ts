// A new installation: nothing leaves. Mail of customers and of the platform itself is kept, and can be read.
import { connect } from 'node:tls';
import { createTransport } from 'nodemailer';
import { issueServerCertificate, newAuthority } from '../../drivers/certificates/authority';
import { sealedCertificate } from '../../models/domains/certificate';
import { startDnsParent, type DnsParent } from '../support/dns/dns_parent';
import { freePort } from '../support/processes/free_port';
import { openMailBench, type MailBench } from '../support/email/mail';
import { fileNeeds } from '../support/runner/programs';
import type { Answer, TestService } from '../support/service';
import { waitFor } from '../support/wait_for';
import { withConfig } from '../support/config';

fileNeeds('named');

let bench: MailBench;
let service: TestService;
let parent: DnsParent;
let port: number;
let tlsPort: number;

beforeAll(async () => {
  [port, tlsPort] = [await freePort(), await freePort()];
  const dnsPort = await freePort();
  parent = await startDnsParent('example.com', await freePort());
  bench = await openMailBench({
    worker: true,
    settings: {
      SMTP_PORTS: `${port},${tlsPort}/tls`,
      DNS_PORT: String(dnsPort),
      ...withConfig({ dnsRoots: [parent.address] }),
    },
  });
  ({ service } = bench);
});

afterAll(async () => {
  await bench.close();
  await parent.close();
});

/** The text of the first message that was kept for the address. */
const kept = (address: string): Promise<string> =>
  waitFor(
    `the mail to ${address}`,
    async () => {
      const [row] = await service.sql(
        `select message_id from email_deliveries where recipient = $1 and status = 'kept'`,
        [address],
      );
      return row && (await (await fetch(`${service.adminUrl}/mail/${row.message_id}`)).text());
    },
    15_000,
  );

test('mail of a customer is kept, and says which keys would sign it', async () => {
  const domain = await bench.verified('sink.example');
  const { body: zone } = await service.call('POST', '/v2/email_relay_zones', {
    body: { name: 'sink', email_domain_ids: [domain.id] },
  });
  const client = createTransport({
    ...{ host: '127.0.0.1', port, tls: { rejectUnauthorized: false } },
    auth: { user: zone.smtp_username, pass: zone.smtp_password },
  });
  await client.sendMail({ from: 'a@sink.example', to: 'reader@elsewhere.example', subject: 'Kept', text: 'Here.' });
  client.close();
  const text = await kept('reader@elsewhere.example');
  expect(text).toContain('Subject: Kept');
  expect(text).toContain(`${domain.dkim_selector} (rsa) signs, record found`);
});

test('an e-mail notifier goes the same way', async () => {
  const { body: notifier } = await service.call('POST', '/v2/notifiers', {
    body: { name: 'Ops', type: 'email', config: { addresses: ['ops@elsewhere.example'] } },
  });
  const tested = await service.call('POST', `/v2/notifiers/${notifier.id}/test`);
  expect(tested.body).toMatchObject({ status: 'delivered' });
  expect(await kept('ops@elsewhere.example')).toContain('Auto-Submitted: auto-generated');
  // Links of the platform's own mail are worth a password: none stands in the database, as mail of customers may.
  const inline = `select m.project_id is null as own from email_bodies b join email_messages m on m.id = b.message_id`;
  expect(await service.sql(inline)).toEqual([{ own: false }]);
});

test('a domain whose zone the project holds sets itself up, and takes its records with it', async () => {
  const { body: zone } = await service.call('POST', '/v2/dns_zones', { body: { name: 'held.example.com' } });
  const domain = await bench.created('held.example.com');
  const records = async (): Promise<{ type: string; name: string; managed_by: { type: string } | null }[]> =>
    (await service.call('GET', `/v2/dns_zones/${zone.id}/records`)).body.data;
  const own = (await records()).filter(({ managed_by }) => managed_by?.type === 'email_domain');
  expect(own.map(({ type, name }) => `${type} ${name}`).sort()).toEqual([
    'MX bounce',
    'TXT _dmarc',
    'TXT bounce',
    `TXT ${domain.dkim_selector}-e._domainkey`,
    `TXT ${domain.dkim_selector}._domainkey`,
  ]);
  // Its job puts back what the first look at the parent zone has found.
  const zoneNow = (): Promise<Answer> => service.call('GET', `/v2/dns_zones/${zone.id}`);
  await waitFor('the first look', async () => (await zoneNow()).body.last_checked_at !== null);
  await service.sql(`update dns_zones set status = 'active' where id = $1`, [zone.id]);
  const verified = await bench.verify(domain.id);
  expect(verified.body).toMatchObject({ status: 'verified', dns: 'automatic' });
  const rotated = await service.call('POST', `/v2/email_domains/${domain.id}/dkim/rotate`);
  expect(rotated.body.dkim_selector).not.toBe(domain.dkim_selector);
  await service.call('DELETE', `/v2/email_domains/${domain.id}`);
  await waitFor('the end of the records', async () => !(await records()).some(({ managed_by }) => managed_by), 15_000);
});

test('what the ingress got for SMTP_HOST by ACME is used from the next session on', async () => {
  const issuer = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: tlsPort, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(String(socket.getPeerCertificate().issuer.CN));
        socket.destroy();
      });
      socket.once('error', reject);
    });
  expect(await issuer()).toContain('Mail of');
  const made = await issueServerCertificate(await newAuthority('Public authority'), ['smtp.example.net']);
  const served = { chain: made.certificate, key: made.key };
  const { chain, key } = sealedCertificate(service.platform.secrets, 'smtp.example.net', served);
  // The row of a domain that an application has, whose certificate the loop orders.
  await service.sql('alter table certificates drop constraint certificates_domain');
  await service.sql(
    `insert into certificates (id, domain_id, chain, key) values ('smtp.example.net', 'dom_x', $1, $2)`,
    [...[chain, key]],
  );
  await service.sql(`select pg_notify('certificates', 'smtp.example.net')`);
  await waitFor('the other certificate', async () => (await issuer()) === 'Public authority', 15_000);
});
