// What tests of mail share: a service, a DNS server that it asks, and sending domains that are verified.
import { startDnsServer, type DnsServer } from '../dns/dns_server';
import { startService, type Answer, type TestService } from '../service';

export interface Instruction {
  purpose: string;
  type: string;
  name: string;
  value: string;
  priority: number | null;
  status: string;
  observed_values: string[];
}

export interface MailBench {
  service: TestService;
  dns: DnsServer;
  newName(): string;
  created(name?: string, body?: object): Promise<Answer['body']>;
  verify(id: string): Promise<Answer>;
  publish(records: Instruction[]): void;
  /** A sending domain whose records are there. */
  verified(name?: string, body?: object): Promise<Answer['body']>;
  /** A zone that sends from one domain. */
  relayZone(name: string, domain: { id: string }, body?: object): Promise<Answer['body']>;
  close(): Promise<void>;
}

export const SMTP_HOST = 'smtp.example.net';

export async function openMailBench(
  options: { worker?: boolean; settings?: Record<string, string> } = {},
): Promise<MailBench> {
  const dns = await startDnsServer();
  const settings = { DNS_RESOLVERS: dns.address, SMTP_HOST, MAIL_SPF: 'include:_spf.example.net', ...options.settings };
  const service = await startService({ ...options, settings }).catch(async (error: unknown) => {
    await dns.close();
    throw error;
  });
  let serial = 0;
  const newName = (): string => `mail${(serial += 1)}.example`;
  const verify: MailBench['verify'] = (id) => service.call('POST', `/v2/email_domains/${id}/verify`);
  const created: MailBench['created'] = async (name = newName(), body = {}) => {
    const made = await service.call('POST', '/v2/email_domains', { body: { name, ...body } });
    expect([made.status, made.text]).toEqual([201, expect.anything()]);
    return made.body;
  };
  const publish: MailBench['publish'] = (records) => {
    for (const { name, type, value, priority } of records)
      dns.set(name, type, [type === 'MX' ? `${priority} ${value}` : value]);
  };
  return {
    ...{ service, dns, newName, created, verify, publish },
    async verified(name, body) {
      const domain = await created(name, body);
      publish(domain.dns_records);
      const answer = await verify(domain.id);
      expect(answer.body).toMatchObject({ status: 'verified', status_reason: null });
      return answer.body;
    },
    async relayZone(name, domain, body = {}) {
      const made = await service.call('POST', '/v2/email_relay_zones', {
        body: { name, email_domain_ids: [domain.id], ...body },
      });
      expect([made.status, made.text]).toEqual([201, expect.anything()]);
      return made.body;
    },
    async close() {
      await service.close();
      await dns.close();
    },
  };
}

/** A report about mail, as servers send them. */
export const mailReport = (type: string, fields: string, quoted: string): string =>
  [
    ...['From: MAILER-DAEMON@receiver.example', 'To: x', 'Subject: Report', 'MIME-Version: 1.0'],
    `Content-Type: multipart/report; report-type=${type}; boundary=cut`,
    ...['', '--cut', 'Content-Type: text/plain', '', 'Sorry.', ''],
    ...['--cut', `Content-Type: message/${type}`, '', fields, ''],
    ...['--cut', 'Content-Type: message/rfc822', '', quoted, '', '--cut--', ''],
  ].join('\r\n');
