// Operations: listEmailRelayZones, rotateEmailRelayCredentials.
// Relay zones: domains, credentials and states (docs/contract/resources.md §14.2).
import { openMailBench, type MailBench } from '../support/email/mail';
import type { Answer, TestService } from '../support/service';

let bench: MailBench;
let service: TestService;

beforeAll(async () => {
  bench = await openMailBench();
  ({ service } = bench);
});

afterAll(() => bench.close());

describe('relay zones', () => {
  const zone = (body: object): Promise<Answer> => service.call('POST', '/v2/email_relay_zones', { body });

  test('send for verified domains only, and keep them', async () => {
    const pending = await bench.created();
    const refused = await zone({ name: 'early', email_domain_ids: [pending.id] });
    expect([refused.status, refused.body.code]).toEqual([422, 'domain_not_verified']);
    const unknown = await zone({ name: 'early', email_domain_ids: ['emd_01h455vb4pex5vsknk084sn02q'] });
    expect([unknown.body.code, unknown.body.field]).toEqual(['reference_not_found', 'email_domain_ids.0']);
    const domain = await bench.verified();
    const made = await zone({ name: 'shop', email_domain_ids: [domain.id], allowed_sources: ['203.0.113.7'] });
    expect(made.body).toMatchObject({
      ...{ status: 'active', smtp_host: 'smtp.example.net', smtp_ports: [2525], smtp_username: made.body.id },
      allowed_sources: ['203.0.113.7/32'],
    });
    expect(made.body.smtp_password).toMatch(/^[\w-]{43}$/);
    expect((await zone({ name: 'shop', email_domain_ids: [domain.id] })).body.code).toBe('name_taken');
    const shown = await service.call('GET', `/v2/email_relay_zones/${made.body.id}`);
    expect(shown.body.smtp_password).toBeNull();
    const used = await service.call('DELETE', `/v2/email_domains/${domain.id}`);
    expect(used.body).toMatchObject({
      code: 'resource_in_use',
      dependents: [{ type: 'email_relay_zone', id: made.body.id }],
    });
    await service.call('DELETE', `/v2/email_relay_zones/${made.body.id}`);
    expect((await service.call('DELETE', `/v2/email_domains/${domain.id}`)).status).toBe(204);
  });

  test('rotate their password, and are disabled and enabled', async () => {
    const domain = await bench.verified();
    const { body } = await zone({ name: 'news', email_domain_ids: [domain.id] });
    const rotated = await service.call('POST', `/v2/email_relay_zones/${body.id}/credentials/rotate`);
    expect(rotated.body.smtp_password).not.toBe(body.smtp_password);
    const change = (changes: object): Promise<Answer> =>
      service.call('PATCH', `/v2/email_relay_zones/${body.id}`, { body: changes });
    expect((await change({ enabled: false })).body.status).toBe('disabled');
    expect((await change({ enabled: true, daily_limit: 5 })).body).toMatchObject({ status: 'active', daily_limit: 5 });
    expect((await change({ daily_limit: null })).body.daily_limit).toBeNull();
    expect(JSON.stringify(await service.sql('select * from activity'))).not.toContain(rotated.body.smtp_password);
  });
});
