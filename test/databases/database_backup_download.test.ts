// Downloads of backups at signed addresses (docs/contract/resources.md §9.6).
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import path from 'node:path';
import { type Answer } from '../support/service';
import {
  fresh,
  MINUTE_MS,
  scheduled,
  service,
  setBackup,
  setUpBackups,
} from '../support/databases/database_backup_cases';

setUpBackups();

const MISSING = 'bkp_01h455vb4pex5vsknk084sn02q';

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

  it('goes on where it broke off, as long as the file is the same', async () => {
    const content = randomBytes(100_000);
    const { backupId, address } = await withFiles('redis', content);
    const { url } = (await address()).body;
    const whole = await fetch(url, { method: 'HEAD' });
    expect([
      whole.headers.get('etag'),
      whole.headers.get('accept-ranges'),
      whole.headers.get('content-length'),
    ]).toEqual([`"${backupId}"`, 'bytes', '100000']);
    const ask = async (headers: Record<string, string>) => {
      const answer = await fetch(url, { headers });
      const body = Buffer.from(await answer.arrayBuffer());
      return [answer.status, answer.headers.get('content-range'), digest(body)];
    };
    const rest = [206, 'bytes 99000-99999/100000', digest(content.subarray(99_000))];
    expect(await ask({ range: 'bytes=99000-' })).toEqual(rest);
    expect(await ask({ range: 'bytes=99000-', 'if-range': `"${backupId}"` })).toEqual(rest);
    for (const headers of [
      { range: 'bytes=99000-', 'if-range': '"another"' },
      { range: 'bytes=100000-' },
      { range: 'bytes=0-1,5-6' },
      { range: 'lines=1-' },
    ])
      expect(await ask(headers as Record<string, string>)).toEqual([200, null, digest(content)]);
  });

  it('is refused where there is no dump, with the reason', async () => {
    const { backupId, address } = await withFiles('postgresql', Buffer.from('x'));
    await service.sql('update database_backups set manifest = $2, status_reason = $3 where id = $1', [
      ...[backupId, JSON.stringify({ dump_reason: 'why' }), 'The dump could not be made.'],
    ]);
    expect(await address()).toMatchObject({
      status: 409,
      body: { code: 'backup_not_ready', detail: 'The dump could not be made.', resource_status: 'completed' },
    });
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
