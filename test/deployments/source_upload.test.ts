// Archives at their signed addresses, over HTTP: what is received, and what is refused. What is deployed of them is in
// test/deployments/source_upload_deployment.test.ts.
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { driverContext } from '../../core/driver';
import { openSourceUploads } from '../../drivers/source/upload_files';
import { uploadAddress } from '../../models/deployments/source_upload/address';
import { saveUploadsMark } from '../../models/deployments/source_upload/job_queries';
import { run, tarOf, useFolder, writeSite } from '../support/builds/archives';
import {
  application,
  archive,
  create,
  directory,
  filesOf,
  get,
  MIB,
  pathOf,
  put,
  ready,
  service,
  useUploads,
} from '../support/deployments/source_uploads';
import { waitFor } from '../support/wait_for';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
// Not in its synchronous form: the service is in this process.
const execute = promisify(execFile);
const folder = useFolder();
useUploads();

describe('an archive', () => {
  test('is received once, and noted with its hash and size', async () => {
    const { status, body } = await create();
    expect(status).toBe(201);
    expect(body).toMatchObject({
      status: 'waiting',
      method: 'PUT',
      bytes_max: 2 * MIB,
      sha256: null,
      size_bytes: null,
    });
    const left = Date.parse(body.expires_at) - Date.parse(body.created_at);
    expect(left).toBeGreaterThan(3_590_000);
    const sha256 = createHash('sha256').update(archive).digest('hex');
    const sent = await put(body.upload_url, archive);
    expect(sent).toEqual({ status: 200, body: { id: body.id, status: 'ready', sha256, size_bytes: archive.length } });
    const { upload_url, ...rest } = body;
    expect(upload_url).toContain(`/uploads/sources/${body.id}?`);
    const now = await get(body.id);
    expect(now).toMatchObject({
      ...rest,
      upload_url: null,
      status: 'ready',
      sha256,
      size_bytes: archive.length,
      updated_at: expect.any(String),
    });
    expect(filesOf(body.id)).toEqual([`${body.id}.${sha256}`]);
    expect(await put(body.upload_url, archive)).toMatchObject({
      status: 409,
      body: { code: 'invalid_state', resource_status: 'ready' },
    });
    const { body: page } = await service.call('GET', `${pathOf()}?status=ready`);
    expect(page.data).toEqual([now]);
    const events = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${body.id}`);
    expect(events.body.data.map(({ action }: any) => action)).toEqual(['source_upload.ready', 'source_upload.created']);
  });

  test('comes from curl, of known and of unknown length', async () => {
    const site = writeSite(path.join(folder.path, 'curl'));
    const one = (await create()).body;
    await execute('sh', ['-c', `tar cz -C ${site} . | curl -sS -f -T - '${one.upload_url}'`]);
    expect(await get(one.id)).toMatchObject({ status: 'ready' });
    run(folder.path, 'tar', '-czf', 'c.tgz', '-C', site, '.');
    // More than a megabyte, for which curl asks before it sends.
    writeFileSync(path.join(site, 'big'), randomBytes(1_500_000));
    run(folder.path, 'tar', '-czf', 'd.tgz', '-C', site, '.');
    for (const name of ['c.tgz', 'd.tgz']) {
      const { body } = await create();
      await execute('curl', ['-sS', '-f', '-T', path.join(folder.path, name), body.upload_url]);
      expect(await get(body.id)).toMatchObject({ status: 'ready' });
    }
  });

  test('that is not the announced one is refused', async () => {
    const wrong = (await create({ sha256: 'A'.repeat(64) })).body;
    expect(wrong.sha256).toBe('a'.repeat(64));
    expect(await put(wrong.upload_url, archive)).toMatchObject({ status: 422, body: { code: 'archive_invalid' } });
    expect(await get(wrong.id)).toMatchObject({ status: 'refused', status_reason: expect.stringMatching(/SHA-256/) });
    const shorter = (await create({ size_bytes: archive.length + 1 })).body;
    const { body } = await put(shorter.upload_url, archive);
    expect(body.detail).toBe(`The archive has ${archive.length} bytes, and ${archive.length + 1} were announced.`);
    const same = (
      await create({ size_bytes: archive.length, sha256: createHash('sha256').update(archive).digest('hex') })
    ).body;
    expect((await put(same.upload_url, archive)).status).toBe(200);
    expect([...filesOf(wrong.id), ...filesOf(shorter.id)]).toEqual([]);
  });

  test('that is too large, broken or hostile is refused, with what is wrong, and leaves nothing', async () => {
    const large = (await create()).body;
    expect(await put(large.upload_url, Buffer.alloc(2 * MIB + 1))).toMatchObject({
      status: 413,
      body: { limit_bytes: 2 * MIB },
    });
    const chunked = (await create()).body;
    const endless = new ReadableStream({ pull: (to) => to.enqueue(Buffer.alloc(65_536)) });
    const answer = await fetch(chunked.upload_url, {
      method: 'PUT',
      body: endless,
      duplex: 'half',
    } as RequestInit).catch((error) => error);
    if (answer instanceof Response) expect(answer.status).toBe(413);
    const bomb = (await create()).body;
    const bombed = await put(bomb.upload_url, await tarOf({ name: 'zeros', body: Buffer.alloc(3 * MIB) }));
    expect(bombed.body).toMatchObject({ code: 'archive_invalid', detail: expect.stringMatching(/larger than 2 MB/) });
    const out = (await create()).body;
    const refused = await put(out.upload_url, await tarOf({ name: '../../etc/passwd', body: 'x' }));
    expect(refused.body).toMatchObject({
      status: 422,
      detail: expect.stringMatching(/leads out of it/),
      instance: `/uploads/sources/${out.id}`,
    });
    for (const { id } of [large, chunked, bomb, out]) {
      expect(await get(id)).toMatchObject({ status: 'refused', status_reason: expect.any(String) });
      expect(filesOf(id)).toEqual([]);
    }
    expect(await put(out.upload_url, archive)).toMatchObject({ status: 409, body: { resource_status: 'refused' } });
  });

  test('whose sender breaks off leaves the upload waiting and nothing on the disk', async () => {
    const { body } = await create();
    const request = http.request(body.upload_url, { method: 'PUT', headers: { 'Content-Length': archive.length } });
    request.on('error', () => undefined);
    request.write(archive.subarray(0, 20));
    while (filesOf(body.id).length === 0) await sleep(20);
    // Only one at a time.
    expect(await put(body.upload_url, archive)).toMatchObject({ status: 409, body: { code: 'resource_busy' } });
    request.destroy();
    // At once, not when the silence has lasted too long.
    await waitFor('its end', async () => filesOf(body.id).length === 0, 10_000);
    expect(await get(body.id)).toMatchObject({ status: 'waiting' });
    while ((await put(body.upload_url, archive)).status !== 200) await sleep(50);
  });

  test('of a process that was killed may be sent again when its claim has ended', async () => {
    const { body } = await create();
    const files = openSourceUploads(service.platform.config.runtimeDir);
    await files.ensureMark();
    // As it is left: claimed, and a part of the file.
    await service.sql(`update source_uploads set receiving_until = now() + interval '30 s' where id = $1`, [body.id]);
    writeFileSync(path.join(directory(), `${body.id}.old.part`), 'x');
    expect((await put(body.upload_url, archive)).status).toBe(409);
    await service.sql('update source_uploads set receiving_until = now() where id = $1', [body.id]);
    expect((await put(body.upload_url, archive)).status).toBe(200);
    await files.removeOldParts(-1_000, driverContext(5_000));
    expect(filesOf(body.id)).toHaveLength(1);
  });
});

describe('an address', () => {
  test('that was altered, is of another upload or has expired leads nowhere', async () => {
    const [one, two] = [(await create()).body, (await create()).body];
    const url = new URL(one.upload_url);
    const other = one.upload_url.replace(one.id, two.id);
    const later = one.upload_url.replace(/expires=\d+/, `expires=${Number(url.searchParams.get('expires')) + 9}`);
    for (const wrong of [other, later, one.upload_url.slice(0, -3), `${url.origin}${url.pathname}`])
      expect(await put(wrong, archive)).toMatchObject({ status: 404, body: { code: 'not_found' } });
    // The clock of a service is not moved in a test: ids are made by it, and only grow.
    const past = uploadAddress(service.platform, one.id, Math.floor(Date.now() / 1000) - 1);
    expect((await put(past, archive)).status).toBe(404);
    const soon = uploadAddress(service.platform, two.id, Math.floor(Date.now() / 1000) + 60);
    expect((await put(soon, archive)).status).toBe(200);
    expect((await fetch(one.upload_url)).status).toBe(404);
    expect(await get(one.id)).toMatchObject({ status: 'waiting' });
  });

  test('is made for those who may deploy only', async () => {
    const key = await service.mintKey({ scopes: ['read', 'write'] });
    const refused = await service.call('POST', pathOf(), { body: {}, key });
    expect(refused).toMatchObject({ status: 403, body: { code: 'insufficient_scope' } });
    const { id } = await ready();
    expect((await service.call('GET', pathOf(application, `/${id}`), { key })).body.upload_url).toBeNull();
    const stranger = await service.newProject({ stranger: true });
    const options = { key: stranger.key, project: stranger.id };
    expect((await service.call('GET', pathOf(application, `/${id}`), options)).status).toBe(404);
    expect((await service.call('POST', pathOf(), { ...options, body: {} })).status).toBe(404);
  });

  test.each<[object, string]>([
    [{ size_bytes: 2 * MIB + 1 }, 'size_bytes'],
    [{ size_bytes: 0 }, 'size_bytes'],
    [{ sha256: 'abc' }, 'sha256'],
    [{ sha256: 7 }, 'sha256'],
  ])('is not made for %p', async (body, field) => {
    const { status, body: answer } = await create(body);
    expect([status, answer.errors[0].field]).toEqual([422, field]);
  });

  test('is not made where the host has another disk', async () => {
    await saveUploadsMark(service.platform.database, 'of another machine');
    expect(await create()).toMatchObject({ status: 409, body: { code: 'engine_unavailable' } });
    await service.sql('delete from host_directories');
    expect((await create()).status).toBe(201);
  });

  test('is not made beyond the limit', async () => {
    await service.sql(
      `insert into source_uploads (id, project_id, application_id, bytes_max, expires_at, created_at, updated_at)
        select 'src_' || lpad(n::text, 26, '0'), $2, $1, 1, now(), now(), now() from generate_series(1, 50) n`,
      [application, service.project],
    );
    expect(await create()).toMatchObject({ status: 403, body: { code: 'quota_exceeded' } });
  });
});

test('a sender that is slow is not cut off like other requests', async () => {
  const { body } = await create();
  const sender = spawn('curl', ['-sS', '--limit-rate', '9', '-H', 'Expect:', '-T', '-', body.upload_url]);
  let output = '';
  sender.stdout.on('data', (piece) => (output += piece));
  sender.stdin.end(archive);
  await new Promise((resolve) => sender.once('close', resolve));
  expect(JSON.parse(output)).toMatchObject({ status: 'ready' });
}, 60_000);
