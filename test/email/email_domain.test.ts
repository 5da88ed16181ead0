// Operations: listEmailDomains.
// Sending domains: fields, DNS records, the 72 hours, and the rotation of keys (docs/contract/resources.md §14.1).
import { createPublicKey } from 'node:crypto';
import { openMailBench, type Instruction, type MailBench } from '../support/email/mail';
import { startService, type Answer, type TestService } from '../support/service';

type Body = Answer['body'];

let bench: MailBench;
let service: TestService;

beforeAll(async () => {
  bench = await openMailBench();
  ({ service } = bench);
});

afterAll(() => bench.close());

const instructions = ({ dns_records }: Body, purpose: string): Instruction[] =>
  dns_records.filter((entry: Instruction) => entry.purpose === purpose);

test('a new domain lists a record for SPF, the return path, DMARC and each key', async () => {
  const domain = await bench.created('Shop.Example', { return_path_subdomain: 'rp' });
  expect(domain).toMatchObject({ name: 'shop.example', status: 'pending', open_tracking: false, verified_at: null });
  expect(domain.dns_records.map(({ purpose, type, name }: Instruction) => [purpose, type, name])).toEqual([
    ['spf', 'TXT', 'rp.shop.example'],
    ['dkim', 'TXT', `${domain.dkim_selector}._domainkey.shop.example`],
    ['dkim', 'TXT', `${domain.dkim_selector}-e._domainkey.shop.example`],
    ['return_path', 'MX', 'rp.shop.example'],
    ['dmarc', 'TXT', '_dmarc.shop.example'],
  ]);
  expect(instructions(domain, 'spf')[0]?.value).toBe('v=spf1 include:_spf.example.net ~all');
  expect(instructions(domain, 'return_path')[0]).toMatchObject({ value: 'smtp.example.net', priority: 10 });
  const shown = /p=(.+)$/.exec(instructions(domain, 'dkim')[0]?.value ?? '')?.[1] ?? '';
  const key = createPublicKey({ key: Buffer.from(shown, 'base64'), format: 'der', type: 'spki' });
  expect(key.asymmetricKeyDetails?.modulusLength).toBe(2048);
  const [row] = await service.sql('select dkim_keys from email_domains where id = $1', [domain.id]);
  expect(row.dkim_keys).toMatch(/^v1\./);
});

test('verify finds the records, and says what it found instead', async () => {
  const domain = await bench.created();
  const nothing = (await bench.verify(domain.id)).body;
  expect(nothing).toMatchObject({ status: 'pending', last_checked_at: expect.any(String) });
  expect(nothing.status_reason).toContain(`The MX record of bounce.${domain.name} was not found.`);
  bench.publish(domain.dns_records);
  bench.dns.set(`bounce.${domain.name}`, 'MX', ['10 mx.elsewhere.example']);
  const wrong = (await bench.verify(domain.id)).body;
  expect(wrong.status).toBe('pending');
  expect(instructions(wrong, 'return_path')[0]).toMatchObject({
    status: 'failed',
    observed_values: ['10 mx.elsewhere.example'],
  });
  bench.dns.set(`bounce.${domain.name}`, 'MX', ['10 smtp.example.net']);
  const right = (await bench.verify(domain.id)).body;
  expect(right).toMatchObject({ status: 'verified', status_reason: null, verified_at: right.last_checked_at });
  expect(right.dns_records.map(({ status }: Instruction) => status)).toEqual(Array(5).fill('verified'));
});

test('two policies of SPF are none, DMARC and Ed25519 are advice', async () => {
  const domain = await bench.created();
  const needed = domain.dns_records.filter(
    ({ purpose, name }: Instruction) => purpose !== 'dmarc' && !name.includes('-e.'),
  );
  bench.publish(needed);
  const spf = instructions(domain, 'spf')[0] as Instruction;
  bench.dns.set(spf.name, 'TXT', [spf.value, 'v=spf1 -all', 'something else']);
  expect((await bench.verify(domain.id)).body).toMatchObject({
    status: 'pending',
    status_reason: `The TXT record of ${spf.name} has another value.`,
  });
  bench.dns.set(spf.name, 'TXT', ['v=spf1 ip4:192.0.2.1 include:_spf.example.net -all', 'something else']);
  expect((await bench.verify(domain.id)).body.status).toBe('verified');
});

test('fails with provider_error while the DNS is silent', async () => {
  const domain = await bench.created();
  bench.dns.fail(`bounce.${domain.name}`);
  const answer = await bench.verify(domain.id);
  expect([answer.status, answer.body.code]).toEqual([502, 'provider_error']);
});

test('another return path is verified anew', async () => {
  const domain = await bench.verified();
  const tracked = await service.call('PATCH', `/v2/email_domains/${domain.id}`, { body: { open_tracking: true } });
  expect(tracked.body).toMatchObject({ status: 'verified', open_tracking: true });
  const moved = await service.call('PATCH', `/v2/email_domains/${domain.id}`, {
    body: { return_path_subdomain: 'back' },
  });
  expect(moved.body).toMatchObject({ status: 'pending', return_path_subdomain: 'back' });
  const bad = await service.call('PATCH', `/v2/email_domains/${domain.id}`, {
    body: { return_path_subdomain: 'a.b' },
  });
  expect(bad.body.errors).toMatchObject([{ field: 'return_path_subdomain', code: 'invalid_format' }]);
});

test('72 hours without its records end a claim, and a verification, until they are found', async () => {
  const domain = await bench.created();
  const past = (column: string): Promise<unknown> =>
    service.sql(`update email_domains set ${column} = now() - interval '73 hours' where id = $1`, [domain.id]);
  expect((await bench.verify(domain.id)).body.status).toBe('pending');
  await past('pending_since');
  expect((await bench.verify(domain.id)).body).toMatchObject({ status: 'failed', status_reason: expect.any(String) });
  bench.publish(domain.dns_records);
  expect((await bench.verify(domain.id)).body).toMatchObject({ status: 'verified', status_reason: null });
  for (const { name, type } of domain.dns_records) bench.dns.set(name, type, []);
  expect((await bench.verify(domain.id)).body).toMatchObject({ status: 'verified', status_reason: expect.any(String) });
  await past('missing_since');
  expect((await bench.verify(domain.id)).body.status).toBe('failed');
});

test('a rotation signs with the old key until the record of the new one is found', async () => {
  const domain = await bench.verified();
  const rotate = (): Promise<Answer> => service.call('POST', `/v2/email_domains/${domain.id}/dkim/rotate`);
  const rotating = (await rotate()).body;
  expect(rotating).toMatchObject({ status: 'verified', dkim_selector: domain.dkim_selector });
  expect(instructions(rotating, 'dkim')).toHaveLength(4);
  const again = await rotate();
  expect([again.status, again.body.code]).toEqual([409, 'resource_busy']);
  expect((await bench.verify(domain.id)).body.dkim_selector).toBe(domain.dkim_selector);
  bench.publish(rotating.dns_records);
  const rotated = (await bench.verify(domain.id)).body;
  expect(rotated.dkim_selector).toBe(instructions(rotating, 'dkim')[2]?.name.split('.')[0]);
  expect(instructions(rotated, 'dkim')).toHaveLength(2);
  expect((await rotate()).status).toBe(200);
});

test('names are unique among verified domains, and within a project', async () => {
  const name = bench.newName();
  const stranger = await service.newProject({ stranger: true });
  const claim = await service.call('POST', '/v2/email_domains', {
    body: { name },
    key: stranger.key,
    project: stranger.id,
  });
  expect(claim.status).toBe(201);
  const domain = await bench.verified(name);
  const taken = async (answer: Promise<Answer>): Promise<void> => {
    const { status, body } = await answer;
    expect([status, body.code]).toEqual([409, 'domain_taken']);
  };
  await taken(service.call('POST', '/v2/email_domains', { body: { name } }));
  const other = { key: stranger.key, project: stranger.id };
  bench.publish(claim.body.dns_records);
  await taken(service.call('POST', `/v2/email_domains/${claim.body.id}/verify`, other));
  expect((await service.call('DELETE', `/v2/email_domains/${domain.id}`)).status).toBe(204);
  expect((await service.call('POST', `/v2/email_domains/${claim.body.id}/verify`, other)).body.status).toBe('verified');
  for (const own of ['co.uk', 'smtp.example.net', 'x.localhost']) {
    const refused = await service.call('POST', '/v2/email_domains', { body: { name: own } });
    expect([own, refused.body.errors]).toEqual([own, [expect.objectContaining({ code: 'invalid_format' })]]);
  }
});

test('SMTP_PORTS=0 switches the group off', async () => {
  const off = await startService({ settings: { SMTP_PORTS: '0' } });
  try {
    const answer = await off.call('POST', '/v2/email_domains', { body: { name: 'off.example' } });
    expect([answer.status, answer.body.code]).toEqual([409, 'engine_unavailable']);
    expect(answer.body.detail).toContain('SMTP_PORTS');
  } finally {
    await off.close();
  }
});
