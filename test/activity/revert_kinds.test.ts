// Each kind of change is taken back, and is made again by the revert of the revert: what the API shows is as before.
import { SAMPLE_SETTINGS } from '../support/builds/sample_repository';
import { startService, type TestService } from '../support/service';
import { openWorld, type World } from '../support/world';

let service: TestService;
let world: World;
beforeAll(async () => {
  service = await startService({ settings: SAMPLE_SETTINGS });
  world = openWorld(service);
});
afterAll(() => service.close());

/* oxlint-disable typescript/no-explicit-any -- the OpenAPI check types answers */
const newest = async (): Promise<any> =>
  (await world.call('GET', `/v2/projects/${world.project}/activity?limit=1`)).body.data[0];

async function revertNewest(): Promise<any> {
  const entry = await newest();
  const { status, body } = await world.call('POST', `/v2/activity/${entry.id}/revert`);
  if (status !== 200) throw new Error(`${entry.action} ${entry.id}: ${status} ${JSON.stringify(body)}`);
  return body;
}

/** What a resource shows, without what follows from the time and from the work behind it. */
async function shown(path: string): Promise<any> {
  const { body } = await world.call('GET', path);
  const data = body.data ?? body.rules ?? body.statements ?? [body];
  const plain = data.map(
    ({ updated_at: _, status: __, status_reason: ___, serial: ____, ...rest }: Record<string, unknown>) => rest,
  );
  return plain.sort((one: any, other: any) => String(one.id ?? one.name).localeCompare(String(other.id ?? other.name)));
}

/** Makes a change, takes it back, and makes it again by the revert of the revert. */
async function thereAndBack(
  path: string,
  change: () => Promise<{ status: number; text: string }>,
  seen = shown,
): Promise<void> {
  const before = await seen(path);
  const { status, text } = await change();
  if (status >= 300) throw new Error(text);
  const after = await seen(path);
  expect(after).not.toEqual(before);
  await revertNewest();
  expect(await seen(path)).toEqual(before);
  await revertNewest();
  expect(await seen(path)).toEqual(after);
}

const patch = (path: string, body: object) => () => world.call('PATCH', path, { body });

test('settings of resources', async () => {
  const [volume, bucket, application] = [
    await world.fresh('volume'),
    await world.fresh('bucket'),
    (await world.call('POST', '/v2/applications', { body: { name: 'plain' } })).body.id as string,
  ];
  await world.call('PATCH', `/v2/volumes/${volume}`, { body: { application_id: null } });
  const changes: [string, object][] = [
    [`/v2/applications/${application}`, { name: 'renamed', description: 'New.', deletion_protection: true }],
    [`/v2/applications/${application}`, { source: { type: 'git', repository_url: 'https://git.example.com/a/b.git' } }],
    [`/v2/applications/${application}`, { source: { branch: 'next' } }],
    [`/v2/applications/${application}`, { source: { type: 'image', image: 'registry.example.com/a/b:1' } }],
    [`/v2/applications/${application}`, { source: null }],
    [`/v2/volumes/${volume}`, { name: 'renamed' }],
    [`/v2/volumes/${volume}`, { application_id: application, mount_path: '/data' }],
    [`/v2/volumes/${volume}`, { application_id: null }],
    [`/v2/buckets/${bucket}`, { access: 'public_read', quota_gb: 3 }],
    [`/v2/buckets/${bucket}`, { website: { index_document: 'home.html' } }],
    [`/v2/buckets/${bucket}`, { website: null }],
    [`/v2/projects/${world.project}`, { name: 'Another', description: 'New.' }],
    [`/v2/dns_zones/${await world.id('dns_zone')}`, { default_ttl: 300, soa: { refresh: 1800 } }],
    [`/v2/email_domains/${await world.id('email_domain')}`, { open_tracking: true }],
    [`/v2/email_relay_zones/${await world.id('email_relay_zone')}`, { daily_limit: 5, enabled: false }],
    [`/v2/observers/${await world.id('observer')}`, { name: 'Other', interval_seconds: 300, reminder_minutes: 5 }],
    [`/v2/notifiers/${await world.id('notifier')}`, { name: 'Other', enabled: false }],
    [`/v2/registries/${await world.id('registry')}`, { deletion_protection: true }],
    [`/v2/bucket_access_keys/${await world.id('bucket_access_key')}`, { grants: [], enabled: false }],
  ];
  for (const [path, body] of changes) await thereAndBack(path, patch(path, body));
});

test('a CDN zone: its origin is replaced, its cache is merged', async () => {
  const { body: zone } = await world.call('POST', '/v2/cdn_zones', {
    body: { name: 'edge', origin: { type: 'url', url: 'https://a.example.com', host_header: 'a.example.com' } },
  });
  const path = `/v2/cdn_zones/${zone.id}`;
  const settle = (): Promise<unknown> => service.sql(`update cdn_zones set status = 'active' where id = $1`, [zone.id]);
  const origins = { type: 'bucket', bucket_id: await world.id('bucket') };
  for (const body of [{ cache: { default_ttl_seconds: 5, browser_ttl_seconds: 3 } }, { origin: origins }]) {
    await settle();
    await thereAndBack(path, patch(path, body), async (at) => {
      await settle();
      return shown(at);
    });
  }
});

test('settings of an application: the fields that the request named, defaults too', async () => {
  const id = await world.id('application');
  const path = `/v2/applications/${id}/settings`;
  await thereAndBack(path, patch(path, { build: { build_command: 'make' }, http: { sticky_sessions: true } }));
  await thereAndBack(path, patch(path, { previews: { expire_after_days: null }, log_retention_days: 3 }));
  await thereAndBack(path, patch(path, { build: { build_command: null } }));
  const entry = await newest();
  // Another field may have changed since.
  await world.call('PATCH', path, { body: { log_retention_days: 9 } });
  expect((await world.call('POST', `/v2/activity/${entry.id}/revert`)).status).toBe(200);
  expect((await world.call('GET', path)).body.log_retention_days).toBe(9);
  const auto = `/v2/applications/${id}/auto_deploy`;
  await thereAndBack(auto, patch(auto, { paths: ['src/**'], branch: 'next' }));
});

test('process types: made, changed, scaled and removed, with their ids', async () => {
  const path = `/v2/applications/${await world.id('application')}/processes`;
  const create = (): Promise<any> =>
    world.call('POST', path, { body: { type: 'mailer', command: 'npm run mail', instances: 1 } });
  const { body: made } = await create();
  const one = `${path}/${made.id}`;
  await thereAndBack(path, patch(one, { command: 'npm run other' }));
  await thereAndBack(path, () => world.call('POST', `${one}/scale`, { body: { instances: 3 } }));
  await thereAndBack(path, () => world.call('DELETE', one));
  await thereAndBack(path, () => world.call('POST', path, { body: { type: 'clock' } }));
});

test('DNS records: made, changed, deleted, in a batch, replaced and imported, with their ids', async () => {
  const zone = `/v2/dns_zones/${await world.fresh('dns_zone')}`;
  const path = `${zone}/records`;
  const record = { type: 'A', name: 'www', value: '192.0.2.1', ttl: 300, comment: 'front' };
  const { body: made } = await world.call('POST', path, { body: record });
  const { body: alias } = await world.call('POST', path, {
    body: { type: 'CNAME', name: 'shop', value: 'shop.example.net' },
  });
  const { body: mx } = await world.call('POST', path, {
    body: { type: 'MX', name: '@', value: 'mail.example.net', priority: 10 },
  });
  await thereAndBack(path, patch(`${path}/${made.id}`, { value: '192.0.2.9', ttl: null }));
  await thereAndBack(path, () => world.call('DELETE', `${path}/${mx.id}`));
  await revertNewest();
  await thereAndBack(path, () => world.call('POST', path, { body: { ...record, name: 'api' } }));
  await thereAndBack(path, () =>
    world.call('POST', `${path}/batch`, {
      body: {
        delete: [alias.id],
        update: [{ id: made.id, name: 'web' }],
        create: [{ type: 'A', name: 'shop', value: '192.0.2.5' }],
      },
    }),
  );
  const many = Array.from({ length: 450 }, (_, index) => ({ type: 'A', name: `h${index}`, value: '192.0.2.7' }));
  await thereAndBack(path, () => world.call('PUT', path, { body: { records: many } }));
  await thereAndBack(path, () =>
    world.call('POST', `${zone}/import`, { body: { zone_file: 'only 300 IN TXT "one"', mode: 'replace' } }),
  );
});

test('a program that empties a zone and makes some of it again is in the way of a revert, and says how', async () => {
  const path = `/v2/dns_zones/${await world.fresh('dns_zone')}/records`;
  const records = ['www', 'api', 'mail'].map((name) => ({ type: 'A', name, value: '192.0.2.1' }));
  await world.call('PUT', path, { body: { records } });
  await thereAndBack(path, () => world.call('PUT', path, { body: { records: [] } }));
  const emptied = await newest();
  const { body: again } = await world.call('POST', path, { body: records[0] });
  const refused = await world.call('POST', `/v2/activity/${emptied.id}/revert`);
  expect([refused.status, refused.body.code]).toEqual([409, 'already_exists']);
  expect(refused.body.resource_id).toBe(again.id);
  await world.call('DELETE', `${path}/${again.id}`);
  // The refused revert was rolled back as a whole, so it can be tried again.
  expect((await world.call('POST', `/v2/activity/${emptied.id}/revert`)).status).toBe(200);
  expect((await world.call('GET', `${path}?type=A`)).body.data).toHaveLength(3);
});

test('domains: added, moved and removed', async () => {
  const path = `/v2/applications/${await world.id('application')}/domains`;
  const other = await world.other('application');
  const plain = async (at: string): Promise<any> =>
    (await world.call('GET', at)).body.data.map(({ hostname, dns }: any) => [hostname, dns]);
  const { body: made } = await world.call('POST', path, { body: { hostname: 'shop.example.org', dns: 'manual' } });
  await revertNewest();
  expect(await plain(path)).toEqual([]);
  await service.sql('delete from domains where id = $1', [made.id]);
  await revertNewest();
  expect(await plain(path)).toEqual([['shop.example.org', 'manual']]);
  const [{ id }] = (await world.call('GET', path)).body.data;
  await thereAndBack(path, () => world.call('POST', `${path}/${id}/move`, { body: { application_id: other } }), plain);
  await revertNewest();
  await world.call('DELETE', `${path}/${id}`);
  await service.sql('delete from domains where id = $1', [id]);
  await revertNewest();
  expect(await plain(path)).toEqual([['shop.example.org', 'manual']]);
});

test('schedules, documents of buckets and attachments of databases', async () => {
  const schedules = `/v2/applications/${await world.id('application')}/schedules`;
  const { body: made } = await world.call('POST', schedules, {
    body: { name: 'nightly', cron: '0 3 * * *', command: 'npm run tidy', timeout_seconds: 60, missed: 'skip' },
  });
  const one = `${schedules}/${made.id}`;
  await thereAndBack(schedules, patch(one, { cron: '0 4 * * *', enabled: false }));
  const before = (await world.call('GET', one)).body;
  await world.call('DELETE', one);
  await revertNewest();
  const [back] = (await world.call('GET', `${schedules}?sort=name`)).body.data;
  for (const field of ['name', 'cron', 'command', 'timeout_seconds', 'missed', 'enabled'])
    expect([field, back[field]]).toEqual([field, before[field]]);
  const bucket = `/v2/buckets/${await world.id('bucket')}`;
  const cors = [{ allowed_origins: ['https://shop.example.com'], allowed_methods: ['GET'] }];
  const lifecycle = [{ id: 'old', expire_after_days: 3 }];
  const statements = [{ id: 'all', effect: 'allow', principals: ['*'], actions: ['s3:GetObject'], resources: ['a/*'] }];
  for (const [name, body] of Object.entries({
    cors: { rules: cors },
    lifecycle: { rules: lifecycle },
    policy: { statements },
  })) {
    await thereAndBack(`${bucket}/${name}`, () => world.call('PUT', `${bucket}/${name}`, { body }));
    await thereAndBack(`${bucket}/${name}`, () => world.call('DELETE', `${bucket}/${name}`));
  }
  const attachment = await world.fresh('database_attachment');
  const database = `/v2/databases/${await world.id('database')}/attachments`;
  await thereAndBack(database, () => world.call('DELETE', `${database}/${attachment}`));
});

test('secrets of notifiers and observers come back, and no answer shows them', async () => {
  const { body: notifier } = await world.call('POST', '/v2/notifiers', {
    body: {
      name: 'hook',
      type: 'webhook',
      config: { url: 'https://a.example.com/x', secret: 'whsec_MfKQ9r8GKYqrTwj1' },
    },
  });
  const path = `/v2/notifiers/${notifier.id}`;
  await world.call('PATCH', path, { body: { config: { secret: 'another-secret-of-24-chars' } } });
  const changed = await newest();
  await world.call('PATCH', path, { body: { config: { secret: 'a-third-secret-of-24-chars' } } });
  const conflict = await world.call('POST', `/v2/activity/${changed.id}/revert`);
  expect(conflict.status).toBe(412);
  expect(conflict.text).not.toMatch(/another-secret|a-third-secret|whsec_Mf/);
  await revertNewest();
  expect((await world.call('POST', `/v2/activity/${changed.id}/revert`)).status).toBe(200);
  expect((await world.call('GET', path)).body.config).toEqual(notifier.config);
  const target = 'https://shop.example.com/';
  const { body: observer } = await world.call('POST', '/v2/observers', {
    body: { name: 'o', type: 'uptime', uptime: { target, headers: [{ name: 'X-Token', value: 'one-two-three' }] } },
  });
  const at = `/v2/observers/${observer.id}`;
  const headersNow = async (): Promise<string> => (await sealedHeaders(observer.id)) ?? '';
  const first = await headersNow();
  await world.call('PATCH', at, { body: { uptime: { headers: [{ name: 'X-Token', value: 'four' }] } } });
  expect(await headersNow()).not.toBe(first);
  await revertNewest();
  expect(await headersNow()).toBe(first);
});

async function sealedHeaders(id: string): Promise<string | undefined> {
  const [row] = await service.sql<{ sealed_headers: string }>('select sealed_headers from observers where id = $1', [
    id,
  ]);
  return row && service.platform.secrets.open(row.sealed_headers, `observers:${id}:headers`);
}

test('what cannot be taken back says why', async () => {
  const volume = await world.fresh('volume');
  const reasonOfNewest = async (): Promise<string> => {
    const entry = await newest();
    expect(entry.revertible).toBe(false);
    const { status, body } = await world.call('POST', `/v2/activity/${entry.id}/revert`);
    expect([status, body.code, body.reason]).toEqual([409, 'not_revertible', entry.revert_obstacle]);
    return body.reason;
  };
  expect(await reasonOfNewest()).toBe('created');
  await world.call('PATCH', `/v2/volumes/${volume}`, { body: { application_id: null } });
  await service.sql(`update volumes set status = 'available' where id = $1`, [volume]);
  await world.call('PATCH', `/v2/volumes/${volume}`, { body: { size_gb: 50 } });
  expect(await reasonOfNewest()).toBe('grown');
  await world.call('PATCH', `/v2/volumes/${volume}`, {
    body: { name: (await world.call('GET', `/v2/volumes/${volume}`)).body.name },
  });
  expect(await reasonOfNewest()).toBe('unchanged');
  await world.call('DELETE', `/v2/volumes/${volume}`);
  expect(await reasonOfNewest()).toBe('deleted');
  const zone = `/v2/dns_zones/${await world.fresh('dns_zone')}`;
  await world.call('POST', `${zone}/verify`);
  const records = Array.from({ length: 250 }, (_, index) => ({
    type: 'TXT',
    name: `t${index}`,
    value: 'x'.repeat(2400),
  }));
  await world.call('PUT', `${zone}/records`, { body: { records } });
  expect(await reasonOfNewest()).toBe('too_large');
});
