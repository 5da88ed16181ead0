// Backups as rows, and their downloads at signed addresses (docs/contract/resources.md §9.6). How they are taken:
// test/drivers.
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { firstIdAt, mintId } from '../core/ids';
import { childrenOf, type Children } from './support/database_children';
import { database, describeHost, setStatus } from './support/databases';
import { startService, type Answer, type TestService } from './support/service';

const MISSING = 'bkp_01h455vb4pex5vsknk084sn02q';
const MINUTE_MS = 60_000;
let service: TestService;

beforeAll(async () => {
  service = await startService({ settings: { QUOTAS: '{"databases": 1000, "database_storage_gb": 100000}' } });
  await describeHost(service);
});

afterAll(() => service?.close());

async function fresh(body: Record<string, unknown> = {}): Promise<Children & { id: string }> {
  const { id } = await database(service, body);
  return { ...childrenOf(service, id), id };
}

const setBackup = (id: string, status: string): Promise<unknown[]> =>
  service.sql('update database_backups set status = $2 where id = $1', [id, status]);

/** A scheduled one, as its job leaves it. */
async function scheduled(databaseId: string, columns: Record<string, unknown> = {}): Promise<string> {
  const values: Record<string, unknown> = {
    id: mintId('bkp'),
    type: 'scheduled',
    status: 'completed',
    expires_at: '2036-01-01T00:00:00Z',
    size_bytes: 1000,
    next_at: null,
    ...columns,
  };
  const names = Object.keys(values);
  await service.sql(
    `insert into database_backups (database_id, project_id, engine_version, created_at, updated_at,
      ${names.join(', ')})
      select id, project_id, engine_version, now(), now(), ${names.map((_, index) => `$${index + 2}`).join(', ')}
        from databases where id = $1`,
    [databaseId, ...Object.values(values)],
  );
  return values.id as string;
}

describe('taking one', () => {
  it('answers everything that is promised', async () => {
    const { id, post, get } = await fresh();
    const made = await post('backups', { note: 'Before the migration' });
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `${service.url}/v2/databases/${id}/backups/${made.body.id}`,
    ]);
    expect(made.body).toEqual({
      id: expect.stringMatching(/^bkp_[0-9a-hjkmnp-tv-z]{26}$/),
      database_id: id,
      type: 'manual',
      note: 'Before the migration',
      engine_version: '17',
      size_bytes: null,
      started_at: null,
      finished_at: null,
      expires_at: null,
      status: 'pending',
      status_reason: null,
      created_at: expect.stringMatching(/Z$/),
      updated_at: made.body.created_at,
    });
    expect((await get('backups', made.body.id)).body).toEqual(made.body);
    expect(
      await service.sql('select next_at is not null as due from database_backups where id = $1', [made.body.id]),
    ).toEqual([{ due: true }]);
  });

  it('needs no body', async () => {
    const { post } = await fresh();
    expect((await post('backups')).body).toMatchObject({ note: null, status: 'pending' });
  });

  it('refuses what does not fit', async () => {
    const { post } = await fresh();
    for (const [body, code] of [
      [{ note: 'x'.repeat(201) }, 'too_long'],
      [{ note: 1 }, 'invalid_type'],
      [{ type: 'scheduled' }, 'immutable'],
      [{ name: 'x' }, 'unknown_field'],
    ] as const) {
      expect(await post('backups', body)).toMatchObject({
        status: 422,
        body: { code: 'validation_failed', errors: [{ code }] },
      });
    }
    const { post: without } = await fresh({ engine_version: '18' });
    expect(await without('backups')).toMatchObject({
      status: 422,
      body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'backups' },
    });
  });

  it('needs an available database', async () => {
    const { id, post } = await fresh();
    for (const [status, code] of [
      ['provisioning', 'resource_busy'],
      ['stopped', 'invalid_state'],
      ['failed', 'invalid_state'],
    ] as const) {
      await setStatus(service, id, status);
      expect(await post('backups')).toMatchObject({ status: 409, body: { code, resource_status: status } });
    }
  });

  it('is one at a time, the scheduled ones included', async () => {
    const { id, post } = await fresh();
    const answers = await Promise.all([post('backups'), post('backups'), post('backups')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409]);
    expect(answers.find(({ status }) => status === 409)?.body).toMatchObject({
      code: 'resource_busy',
      resource_status: 'pending',
    });
    await service.sql(`update database_backups set status = 'completed' where database_id = $1`, [id]);
    const running = await scheduled(id, { status: 'running' });
    expect(await post('backups')).toMatchObject({
      status: 409,
      body: { code: 'resource_busy', resource_status: 'running' },
    });
    await setBackup(running, 'failed');
    expect((await post('backups')).status).toBe(201);
  });

  it('stops at twenty manual ones; scheduled ones do not count', async () => {
    const { id, post, remove } = await fresh();
    await scheduled(id);
    const kept = await Promise.all(
      Array.from({ length: 20 }, () => scheduled(id, { type: 'manual', expires_at: null })),
    );
    expect(await post('backups')).toMatchObject({
      status: 403,
      body: { code: 'quota_exceeded', resource: 'manual_backups', used: 20, limit: 20 },
    });
    expect((await remove('backups', kept[0] as string)).status).toBe(204);
    expect((await post('backups')).status).toBe(201);
  });

  it('happens once where the request comes twice', async () => {
    const { post, get } = await fresh();
    const headers = { 'Idempotency-Key': 'backup-1' };
    const [first, second] = [await post('backups', {}, headers), await post('backups', {}, headers)];
    expect([first.status, second.status, second.body]).toEqual([201, 201, first.body]);
    expect((await get('backups')).body.data).toHaveLength(1);
  });
});

describe('deletion', () => {
  it('waits for one that is being taken', async () => {
    const { post, remove, get } = await fresh();
    const { id } = (await post('backups')).body;
    for (const status of ['pending', 'running']) {
      await setBackup(id, status);
      expect(await remove('backups', id)).toMatchObject({
        status: 409,
        body: { code: 'resource_busy', resource_status: status },
      });
    }
    await setBackup(id, 'completed');
    expect([
      (await remove('backups', id)).status,
      (await get('backups', id)).status,
      (await remove('backups', id)).status,
    ]).toEqual([204, 404, 404]);
    expect(
      await service.sql(
        'select deleted_at is not null as gone, next_at <= now() as due from database_backups where id = $1',
        [id],
      ),
    ).toEqual([{ gone: true, due: true }]);
  });
});

test('lists have filters and pages', async () => {
  const { id, get } = await fresh();
  const day = 24 * 60 * MINUTE_MS;
  const ago = (days: number): string => new Date(Date.now() - days * day).toISOString();
  const [old, middle, young] = [3, 2, 1].map((days) => firstIdAt('bkp', ago(days))) as [string, string, string];
  for (const [one, type, status] of [
    [old, 'scheduled', 'completed'],
    [middle, 'manual', 'failed'],
    [young, 'scheduled', 'completed'],
  ] as const)
    await scheduled(id, { id: one, type, status });
  const ids = async (query: string): Promise<string[]> =>
    (await get('backups', `?${query}`)).body.data.map((one: { id: string }) => one.id);
  expect(await ids('')).toEqual([young, middle, old]);
  expect(await ids('sort=created_at&limit=2')).toEqual([old, middle]);
  expect(await ids('type=manual')).toEqual([middle]);
  expect(await ids('status=completed')).toEqual([young, old]);
  expect(await ids(`since=${ago(2.5)}`)).toEqual([young, middle]);
  expect(await ids(`since=${ago(2.5)}&until=${ago(1.5)}`)).toEqual([middle]);
  const { next_cursor } = (await get('backups', '?limit=2')).body;
  expect(await ids(`limit=2&cursor=${next_cursor}`)).toEqual([old]);
  expect(await get('backups', '?sort=size_bytes')).toMatchObject({
    status: 400,
    body: { code: 'invalid_query_parameter' },
  });
});

describe('download', () => {
  /** The files of a backup as the driver of the engine leaves them. */
  async function withFiles(
    engine: string,
    content: Buffer,
  ): Promise<{ id: string; backupId: string; address(): Promise<Answer> }> {
    const { id, get } = await fresh({ engine });
    const backupId = await scheduled(id);
    const directory = path.join(service.platform.config.databaseDir, 'backups', id, backupId);
    await mkdir(directory, { recursive: true });
    const manifest = {
      file: 'dump.rdb',
      id: backupId,
      database_name: 'app',
      taken_at: '2026-01-31T09:30:00.123Z',
      size_bytes: content.length,
    };
    await writeFile(path.join(directory, 'manifest.json'), JSON.stringify(manifest));
    await writeFile(path.join(directory, engine === 'postgresql' ? 'dump' : 'dump.rdb'), content);
    return { id, backupId, address: () => get(`backups/${backupId}/download`) };
  }

  const digest = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex');

  it.each(['postgresql', 'redis'])('of %s gives the file to whoever has the address', async (engine) => {
    const content = randomBytes(3_000_000);
    const { backupId, address } = await withFiles(engine, content);
    const { status, body } = await address();
    const inMs = Date.parse(body.expires_at) - Date.now();
    expect([status, Object.keys(body).sort(), inMs > 14 * MINUTE_MS && inMs <= 15 * MINUTE_MS]).toEqual([
      200,
      ['expires_at', 'url'],
      true,
    ]);
    expect(body.url).toMatch(
      new RegExp(`^${service.url}/downloads/backups/${backupId}\\?expires=\\d+&signature=[\\w-]{43}$`),
    );
    const file = await fetch(body.url);
    expect([file.status, file.headers.get('content-type'), file.headers.get('cache-control')]).toEqual([
      200,
      'application/octet-stream',
      'private, no-store',
    ]);
    expect(file.headers.get('content-disposition')).toMatch(/^attachment; filename="[\w.-]+\.(dump|rdb)"$/);
    expect(digest(new Uint8Array(await file.arrayBuffer()))).toBe(digest(content));
    const head = await fetch(body.url, { method: 'HEAD' });
    expect([head.status, (await head.arrayBuffer()).byteLength]).toEqual([200, 0]);
    expect((await fetch(body.url, { method: 'POST' })).status).toBe(404);
  });

  it('ends with its time', async () => {
    const { address } = await withFiles('redis', Buffer.from('x'));
    const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 15 * MINUTE_MS);
    const { url } = (await address()).body;
    clock.mockRestore();
    const answer = await fetch(url);
    expect([answer.status, answer.headers.get('content-type'), (await answer.json()).code]).toEqual([
      404,
      'application/problem+json',
      'not_found',
    ]);
    expect((await fetch((await address()).body.url)).status).toBe(200);
  });

  it('opens no other backup, no other time, and nothing without a signature', async () => {
    const [one, two] = [await withFiles('redis', Buffer.from('one')), await withFiles('redis', Buffer.from('two'))];
    const address = new URL((await one.address()).body.url);
    const expires = Number(address.searchParams.get('expires'));
    const signature = address.searchParams.get('signature') as string;
    const place = `${service.url}/downloads/backups`;
    const altered = [
      `${place}/${two.backupId}${address.search}`,
      `${place}/${one.backupId}?expires=${expires + 1}&signature=${signature}`,
      `${place}/${one.backupId}?expires=${expires}`,
      `${place}/${one.backupId}`,
      `${place}/${one.backupId}?expires=${expires}&signature=${signature.slice(1)}`,
      `${place}/${one.backupId}?expires=${expires}&signature=${signature}&signature=${signature}`,
      `${place}/${one.backupId}?expires=${expires}.0&signature=${signature}`,
      `${place}/..%2F${one.backupId}${address.search}`,
      `${place}/${MISSING}${address.search}`,
    ];
    for (const url of altered) expect([url, (await fetch(url)).status]).toEqual([url, 404]);
    expect(await (await fetch(address)).text()).toBe('one');
  });

  it('is refused before it is completed, and ends with the backup and the database', async () => {
    const { post, get, id } = await fresh();
    const made = (await post('backups')).body;
    for (const status of ['pending', 'running', 'failed']) {
      await setBackup(made.id, status);
      expect(await get(`backups/${made.id}/download`)).toMatchObject({
        status: 409,
        body: { code: 'backup_not_ready', resource_status: status },
      });
    }
    const { backupId, address, id: other } = await withFiles('redis', Buffer.from('x'));
    const { url } = (await address()).body;
    expect((await fetch(url)).status).toBe(200);
    await service.call('DELETE', `/v2/databases/${other}/backups/${backupId}`);
    expect((await fetch(url)).status).toBe(404);
    await setBackup(made.id, 'completed');
    const gone = (await get(`backups/${made.id}/download`)).body.url;
    expect([(await fetch(gone)).status, (await (await fetch(gone)).json()).detail]).toEqual([
      404,
      'The files of the backup are not on this host.',
    ]);
    await service.call('DELETE', `/v2/databases/${id}`);
    expect((await fetch(gone)).status).toBe(404);
  });

  it('survives clients that go away in the middle', async () => {
    const { address } = await withFiles('redis', randomBytes(40_000_000));
    const { url } = (await address()).body;
    await new Promise<void>((resolve, reject) => {
      const sent = request(url, (response) => response.once('data', () => sent.destroy()).once('close', resolve));
      sent.once('error', reject).end();
    });
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(200);
  });

  it('needs a key that may read secrets', async () => {
    const { id, backupId } = await withFiles('redis', Buffer.from('x'));
    const place = `/v2/databases/${id}/backups/${backupId}`;
    const reader = await service.mintKey({ scopes: ['read'] });
    expect((await service.call('GET', place, { key: reader })).status).toBe(200);
    expect(await service.call('GET', `${place}/download`, { key: reader })).toMatchObject({
      status: 403,
      body: { code: 'insufficient_scope', required_scope: 'env:read' },
    });
    const secret = await service.mintKey({ scopes: ['env:read'] });
    expect((await service.call('GET', `${place}/download`, { key: secret })).status).toBe(200);
  });

  it('is no operation of the API', async () => {
    const { paths } = (await (await fetch(`${service.url}/v2/openapi.json`)).json()) as { paths: object };
    expect(Object.keys(paths).filter((one) => one.includes('downloads'))).toEqual([]);
    expect((await fetch(`${service.url}/v2/downloads/backups/${MISSING}`)).status).toBe(404);
  });
});

test('nothing of it is for other projects or other databases', async () => {
  const { id } = await fresh();
  const made = await scheduled(id);
  const other = await service.newProject();
  const beside = await fresh();
  for (const [method, action] of [
    ['GET', ''],
    ['GET', '/download'],
    ['DELETE', ''],
  ] as const) {
    expect(
      (
        await service.call(method, `/v2/databases/${id}/backups/${made}${action}`, {
          key: other.key,
          project: other.id,
        })
      ).status,
    ).toBe(404);
    expect((await service.call(method, `/v2/databases/${beside.id}/backups/${made}${action}`)).status).toBe(404);
    expect((await service.call(method, `/v2/databases/${id}/backups/${MISSING}${action}`)).status).toBe(404);
  }
});
