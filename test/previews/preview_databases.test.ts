// Databases of previews: what the settings take, and what is made for a preview. The rows alone: copies themselves are
// tested in test/engines/databases/masked_copies.test.ts.
import { prepareCopies, removeCopies } from '../../models/databases/preview_copy';
import { copiesOfPreview, variablesOfPreview } from '../../models/deployments/preview_databases';
import { created, application, place, service, setUpPreviews } from '../support/deployments/preview_cases';
import { describeHost, setStatus } from '../support/databases/databases';

setUpPreviews();

/* oxlint-disable typescript/no-explicit-any -- answers of the service */
let database: any;
beforeEach(async () => {
  await describeHost(service);
  const made = await service.call('POST', '/v2/databases', {
    body: { name: `shop-${Date.now()}`, engine: 'postgresql' },
  });
  database = made.body;
  await setStatus(service, database.id, 'available');
  const attached = await service.call('POST', `/v2/databases/${database.id}/attachments`, {
    body: { application_id: application },
  });
  expect(attached.status).toBe(201);
});

const RULE = { table: 'people', column: 'email', rule: 'hash' };
const set = (...databases: object[]) =>
  service.call('PATCH', `/v2/applications/${application}/settings`, { body: { previews: { databases } } });
const copiesIn = (preview: string): Promise<any[]> =>
  service.sql('select * from databases where preview_id = $1 and deleted_at is null', [preview]);
const backUp = async (): Promise<string> => {
  const { body } = await service.call('POST', `/v2/databases/${database.id}/backups`, { body: {} });
  await service.sql(`update database_backups set status = 'completed', finished_at = now() where id = $1`, [body.id]);
  return body.id;
};
const prepare = (id: string): Promise<string> => {
  const { database: sql, config, secrets } = service.platform as any;
  const key = { id, project_id: service.project, application_id: application };
  return prepareCopies({ sql, config, secrets, facts: () => service.platform.facts() } as never, key);
};

test('the settings name attached databases alone, and masks for masked ones alone', async () => {
  const { id: database_id } = database;
  const refused = async (one: object, code: string, field: string): Promise<void> => {
    const { body } = await set({ database_id, ...one });
    expect([body.code, body.field ?? body.errors[0].field]).toEqual([code, field]);
  };
  const first = 'previews.databases.0';
  await refused(
    { database_id: 'db_01h455vb4pex5vsknk084sn02q', mode: 'empty' },
    'reference_not_found',
    `${first}.database_id`,
  );
  await refused({ mode: 'masked' }, 'validation_failed', `${first}.mask`);
  await refused({ mode: 'copy', mask: [RULE] }, 'validation_failed', `${first}.mask`);
  await refused({ mode: 'masked', mask: [{ ...RULE, value: 'x' }] }, 'validation_failed', `${first}.mask.0.value`);
  const kept = await set({ database_id, mode: 'masked', mask: [RULE] });
  expect(kept.body.previews.databases).toEqual([{ database_id, mode: 'masked', mask: [{ ...RULE, value: null }] }]);
  expect((await set()).body.previews.databases).toEqual([]);
});

test('a preview shares what the settings do not name', async () => {
  await set({ database_id: database.id, mode: 'share' });
  const { id } = await created();
  expect(await copiesOfPreview(service.platform.database, id)).toBeNull();
});

test('a masked copy is made of the newest backup, waited for, and goes with the preview', async () => {
  await backUp();
  const backup_id = await backUp();
  await set({ database_id: database.id, mode: 'masked', mask: [RULE] });
  const { id } = await created();
  expect(await prepare(id)).toBe('waiting');
  expect(await prepare(id)).toBe('waiting');
  const [copy, ...others] = await copiesIn(id);
  expect(others).toEqual([]);
  expect(copy).toMatchObject({
    ...{ preview_of: database.id, restore_from: { backup_id }, mask: [{ ...RULE, value: null }] },
    ...{ backup_schedule: { enabled: false }, status: 'provisioning' },
  });
  expect((await service.call('GET', `/v2/databases/${copy.id}`)).body.preview_id).toBe(id);
  const unmasked = JSON.stringify(['public.people.phone']);
  await service.sql(`update databases set status = 'available', unmasked_columns = $2 where id = $1`, [
    copy.id,
    unmasked,
  ]);
  expect(await prepare(id)).toBe('ready');
  const { database: sql, secrets } = service.platform;
  expect(await copiesOfPreview(sql, id)).toMatchObject({
    state: 'ready',
    notes: [
      { level: 'info', text: expect.stringMatching(/is a masked copy of its backup of 2/) },
      { level: 'warning', text: expect.stringContaining('public.people.phone') },
    ],
  });
  const { body: login } = await service.call('GET', `/v2/databases/${copy.id}/credentials`);
  expect(await variablesOfPreview(sql, secrets, id)).toMatchObject({
    ...{ DATABASE_URL: login.endpoints[0].connection_string, DATABASE_PASSWORD: login.password },
  });
  await removeCopies(sql as never, id);
  expect(await copiesIn(id)).toEqual([]);
});

test('an empty one has the engine and the size of the original', async () => {
  await set({ database_id: database.id, mode: 'empty' });
  const { id } = await created();
  await prepare(id);
  expect(await copiesIn(id)).toMatchObject([
    { engine_version: database.engine_version, database_package: database.database_package, restore_from: null },
  ]);
});

test('without a backup, and with a copy that failed, the preview says why; a deployment tries again', async () => {
  await set({ database_id: database.id, mode: 'copy' });
  const { id } = await created();
  const { database: sql } = service.platform;
  expect(await prepare(id)).toBe('failed');
  expect((await copiesOfPreview(sql, id))?.reason).toMatch(/has no completed backup that a preview could copy/);
  await backUp();
  await service.sql(`update previews set status = 'failed' where id = $1`, [id]);
  await service.sql(`update deployments set status = 'failed' where preview_id = $1`, [id]);
  expect((await service.call('POST', place(`/${id}/redeploy`))).status).toBe(202);
  expect(await prepare(id)).toBe('waiting');
  const [copy] = await copiesIn(id);
  await service.sql(`update databases set status = 'failed', status_reason = 'The disk is full.' where id = $1`, [
    copy.id,
  ]);
  expect(await prepare(id)).toBe('failed');
  expect((await copiesOfPreview(sql, id))?.reason).toMatch(/of the preview could not be made. The disk is full./);
  expect(await copiesIn(id)).toEqual([]);
});
