// Operations: listEmailSuppressions.
// Suppressed recipients (docs/contract/resources.md §14.3).
import { openMailBench, type MailBench } from '../support/email/mail';
import type { Answer, TestService } from '../support/service';

let bench: MailBench;
let service: TestService;

beforeAll(async () => {
  bench = await openMailBench();
  ({ service } = bench);
});

afterAll(() => bench.close());

const zone = (body: object): Promise<Answer> => service.call('POST', '/v2/email_relay_zones', { body });

test('a relay zone keeps a list of suppressed recipients', async () => {
  const domain = await bench.verified();
  const { body } = await zone({ name: 'list', email_domain_ids: [domain.id] });
  const path = `/v2/email_relay_zones/${body.id}/suppressions`;
  const made = await service.call('POST', path, { body: { email: 'Jo@Example.COM', detail: 'Asked to.' } });
  expect(made.body).toMatchObject({ email: 'jo@example.com', reason: 'manual', detail: 'Asked to.' });
  const again = await service.call('POST', path, { body: { email: 'JO@example.com' } });
  expect([again.status, again.body.code]).toEqual([409, 'already_exists']);
  expect((await service.call('GET', `${path}?email=JO@example.com&reason=manual`)).body.data).toHaveLength(1);
  expect((await service.call('GET', `${path}?until=2020-01-01T00:00:00Z`)).body.data).toEqual([]);
  expect((await service.call('DELETE', `${path}/${made.body.id}`)).status).toBe(204);
  expect((await service.call('GET', path)).body.data).toEqual([]);
});

test('all spellings of an address are one', async () => {
  const domain = await bench.verified();
  const { body } = await zone({ name: 'spellings', email_domain_ids: [domain.id] });
  const path = `/v2/email_relay_zones/${body.id}/suppressions`;
  const add = (email: string): Promise<Answer> => service.call('POST', path, { body: { email } });
  expect((await add('"Jo"@bücher.example')).body).toMatchObject({ email: 'jo@xn--bcher-kva.example' });
  expect((await add('jo@xn--bcher-kva.example')).body.code).toBe('already_exists');
  expect((await add('"J\\o doe"@example.com')).body).toMatchObject({ email: '"jo doe"@example.com' });
  expect((await add('"jo"doe"@example.com')).body).toMatchObject({ code: 'validation_failed' });
  for (const [spelling, email] of [
    ['"jo"@BÜCHER.example', 'jo@xn--bcher-kva.example'],
    ['"Jo Doe"@example.com', '"jo doe"@example.com'],
  ] as const) {
    const found = await service.call('GET', `${path}?email=${encodeURIComponent(spelling)}`);
    expect(found.body.data).toMatchObject([{ email }]);
  }
});
