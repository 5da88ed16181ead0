// What a request for a deployment makes of a source upload, and how long uploads are kept. Deployments that run are in
// test/deployments/upload.test.ts.
import { createHash } from 'node:crypto';
import { sweepSourceUploads } from '../../models/deployments/source_upload/job_queries';
import {
  application,
  archive,
  create,
  deploy,
  get,
  newApplication,
  pathOf,
  put,
  ready,
  service,
  useUploads,
} from '../support/deployments/source_uploads';

/* oxlint-disable typescript/no-explicit-any -- bodies of answers */
useUploads();

describe('a deployment', () => {
  test('shows what it is made of', async () => {
    const { id } = await ready();
    const sha256 = createHash('sha256').update(archive).digest('hex');
    const { status, body } = await deploy({ source_upload_id: id });
    expect(status).toBe(201);
    const source = { type: 'upload', source_upload_id: id, sha256, bytes: archive.length };
    expect(body).toMatchObject({
      source,
      branch: null,
      commit_sha: null,
      image: null,
      status: 'queued',
      trigger: 'manual',
    });
    expect((await service.call('GET', `/v2/applications/${application}/deployments/${body.id}`)).body.source).toEqual(
      source,
    );
  });

  test('of an application whose source is uploads needs one', async () => {
    const { status, body } = await deploy({});
    expect([status, body.errors]).toEqual([
      422,
      [expect.objectContaining({ field: 'source_upload_id', code: 'required' })],
    ]);
  });

  test('of another source may be made of an upload once', async () => {
    const other = await newApplication({ type: 'preset', preset: 'static-site' });
    const { id } = await ready(other);
    expect((await deploy({ source_upload_id: id }, other)).body.source.type).toBe('upload');
    const next = await deploy({}, other);
    expect(next.body.source).toEqual({ type: 'preset', source_upload_id: null, sha256: null, bytes: null });
    expect((await service.call('GET', `/v2/applications/${other}`)).body.source.type).toBe('preset');
  });

  test.each(['branch', 'commit_sha', 'image'])('takes an upload or %s', async (field) => {
    const { id } = await ready();
    const value = field === 'commit_sha' ? 'a'.repeat(40) : 'main';
    const { status, body } = await deploy({ source_upload_id: id, [field]: value });
    expect([status, body.errors]).toEqual([422, [expect.objectContaining({ field, code: 'depends_on' })]]);
  });

  test('takes no upload that is missing, of others, without an archive or refused', async () => {
    const waiting = (await create()).body;
    const refused = (await create()).body;
    await put(refused.upload_url, 'nonsense');
    const elsewhere = await ready(await newApplication());
    const foreign = await service.newProject({ stranger: true });
    const theirs = await newApplication({ type: 'upload' }, { key: foreign.key, project: foreign.id });
    const { body: their } = await service.call('POST', pathOf(theirs), {
      body: {},
      key: foreign.key,
      project: foreign.id,
    });
    for (const id of [waiting.id, refused.id, elsewhere.id, their.id, 'src_00000000000000000000000000', 'x']) {
      const answer = await deploy({ source_upload_id: id });
      expect(answer).toMatchObject({ status: 422, body: { code: 'reference_not_found', field: 'source_upload_id' } });
    }
  });

  test('is not made of uploads by auto-deploy or previews', async () => {
    const preview = await service.call('POST', `/v2/applications/${application}/previews`, {
      body: { branch: 'main' },
    });
    expect(preview.status).toBe(422);
    const auto = await service.call('PUT', `/v2/applications/${application}/auto_deploy`, { body: { enabled: true } });
    expect(auto.status).toBeGreaterThanOrEqual(400);
  });
});

test('an application takes uploads as its source, with nothing else', async () => {
  const { status, body } = await service.call('POST', '/v2/applications', {
    body: { name: 'wrong', source: { type: 'upload', branch: 'main' } },
  });
  expect([status, body.errors[0].field]).toEqual([422, 'source.branch']);
  const git = { type: 'git', repository_url: 'https://git.example.com/a/b.git' };
  const changed = await service.call('PATCH', `/v2/applications/${application}`, { body: { source: git } });
  expect(changed.body.source.type).toBe('git');
  const back = await service.call('PATCH', `/v2/applications/${application}`, { body: { source: { type: 'upload' } } });
  expect(back.body.source).toMatchObject({ type: 'upload', repository_url: null });
});

test('uploads that nothing has used for a day are swept; what can be rolled back to stays', async () => {
  const [unused, used, over] = [await ready(), await ready(), await ready()];
  const kept = (await deploy({ source_upload_id: used.id })).body;
  const gone = (await deploy({ source_upload_id: over.id })).body;
  await service.sql(`update deployments set status = 'superseded', artifact_kept = true where id = $1`, [kept.id]);
  await service.sql(`update deployments set status = 'failed' where id = $1`, [gone.id]);
  await sweepSourceUploads(service.platform.database);
  for (const { id } of [unused, used, over]) expect((await get(id)).status).toBe('ready');
  await service.sql(`update source_uploads set last_used_at = now() - interval '25 hours' where application_id = $1`, [
    application,
  ]);
  await sweepSourceUploads(service.platform.database);
  const left = (await service.call('GET', pathOf())).body.data.map(({ id }: any) => id);
  expect(left).toEqual([used.id]);
});
