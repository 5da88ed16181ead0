// Proofs of backups as rows: which backup is next, who may ask, and what a database says. How they are made:
// test/engines/databases/database_proofs.test.ts.
import { scheduleProof, setProof } from '../../models/databases/database_proof';
import { fresh, scheduled, service, setBackup, setUpBackups } from '../support/databases/database_backup_cases';
import { setStatus } from '../support/databases/databases';

setUpBackups();

beforeEach(async () => {
  for (const table of ['database_proofs', 'database_backups']) await service.sql(`delete from ${table}`);
});

/** The backup whose proof is begun; null: none. */
async function next(): Promise<string | null> {
  const { database, config } = service.platform;
  await scheduleProof(database, config.databasePorts);
  const [proof] = await service.sql<{ backup_id: string }>('delete from database_proofs returning backup_id');
  return proof?.backup_id ?? null;
}

const end = (id: string, status: 'proven' | 'failed' | 'waiting', more: object = {}): Promise<void> =>
  setProof(service.platform.database, id, {
    ...{ status, failure: status === 'proven' ? null : 'It is damaged.', seconds: 7, rows: 12, ...more },
  });

describe('a request', () => {
  it('is for a completed backup, and shows that the proof is waited for', async () => {
    const { id, get, post } = await fresh();
    const backup = await scheduled(id);
    expect(await post(`backups/${backup}/prove`)).toMatchObject({
      ...{ status: 202, body: { id: backup, proof_status: 'waiting', proof_failure: null, proven_at: null } },
    });
    expect((await get('backups', backup)).body).toMatchObject({ proof_status: 'waiting' });
    await setBackup(backup, 'failed');
    expect(await post(`backups/${backup}/prove`)).toMatchObject({
      ...{ status: 409, body: { code: 'backup_not_ready', resource_status: 'failed' } },
    });
  });

  it('is refused for a server in a pod', async () => {
    const { id, post } = await fresh();
    const backup = await scheduled(id);
    await service.sql('update databases set on_cluster = true where id = $1', [id]);
    expect(await post(`backups/${backup}/prove`)).toMatchObject({
      ...{ status: 422, body: { code: 'engine_feature_unsupported', engine: 'postgresql', feature: 'proofs' } },
    });
    expect(await next()).toBeNull();
  });
});

describe('the turn', () => {
  it('is that of the newest backup of the database that was tried least recently, once', async () => {
    const [one, other] = [await fresh(), await fresh()];
    await scheduled(one.id);
    const newest = await scheduled(one.id);
    const second = await scheduled(other.id);
    await scheduled(other.id, { status: 'failed' });
    expect(await next()).toBe(second);
    await end(second, 'failed');
    expect(await next()).toBe(newest);
    await end(newest, 'proven');
    expect(await next()).toBeNull();
    const newer = await scheduled(other.id);
    const latest = await scheduled(one.id);
    expect(await next()).toBe(newer);
    await end(newer, 'proven');
    expect(await next()).toBe(latest);
  });

  it('is first that of a request, also for an older backup', async () => {
    const { id, post } = await fresh();
    const older = await scheduled(id);
    const newest = await scheduled(id);
    await post(`backups/${older}/prove`);
    expect(await next()).toBe(older);
    await end(older, 'proven');
    expect(await next()).toBe(newest);
  });

  it('is of one at a time', async () => {
    const [one, other] = [await fresh(), await fresh()];
    await scheduled(one.id);
    await scheduled(other.id);
    const { database, config } = service.platform;
    const begun = await Promise.all([1, 2, 3].map(() => scheduleProof(database, config.databasePorts)));
    expect(begun.sort()).toEqual([0, 0, 1]);
    expect(await service.sql('select 1 from database_proofs')).toHaveLength(1);
    await service.sql('delete from database_proofs');
    expect(await service.sql(`select 1 from database_ports where owner_id like 'prf%'`)).toEqual([]);
  });

  it('comes again for one that waited, until a newer one is made', async () => {
    const { id, get } = await fresh();
    const backup = await scheduled(id);
    await end(backup, 'waiting', { againMs: 60_000 });
    expect([await next(), (await get('backups', backup)).body.proof_status]).toEqual([null, 'waiting']);
    await service.sql(`update database_backups set proof_due_at = now() where id = $1`, [backup]);
    expect(await next()).toBe(backup);
    await end(backup, 'waiting', { againMs: 60_000 });
    const newer = await scheduled(id);
    expect([await next(), (await get('backups', backup)).body]).toEqual([
      newer,
      expect.objectContaining({ proof_status: 'unproven', proof_failure: null }),
    ]);
  });

  it('is not that of a database that is restored, or deleted', async () => {
    const { id } = await fresh();
    const backup = await scheduled(id);
    for (const status of ['restoring', 'upgrading', 'provisioning', 'failed']) {
      await setStatus(service, id, status);
      expect(await next()).toBeNull();
    }
    await setStatus(service, id, 'stopped');
    expect(await next()).toBe(backup);
    await service.sql('update databases set deleted_at = now() where id = $1', [id]);
    expect(await next()).toBeNull();
  });
});

test('a result is in the backup and in the database, and a failure is an event', async () => {
  const { id, get } = await fresh();
  const shown = async () => (await service.call('GET', `/v2/databases/${id}`)).body.recovery_seconds;
  const [older, newest] = [await scheduled(id), await scheduled(id)];
  await end(newest, 'proven');
  expect((await get('backups', newest)).body).toMatchObject({
    ...{ proof_status: 'proven', proof_seconds: 7, proof_rows: 12, proof_failure: null },
    proven_at: expect.stringMatching(/Z$/),
  });
  await end(older, 'proven', { seconds: 99 });
  expect(await shown()).toBe(7);
  await end(newest, 'failed');
  expect((await get('backups', newest)).body).toMatchObject({
    ...{ proof_status: 'failed', proven_at: null, proof_failure: 'It is damaged.' },
  });
  const { body } = await service.call('GET', `/v2/projects/${service.project}/activity?resource_id=${newest}`);
  expect(body.data.map(({ action }: { action: string }) => action)).toEqual(['database_backup.proof_failed']);
});

test('an assertion is SQL, and goes with null', async () => {
  const { id } = await fresh();
  const set = (database: string, proof_assertion: unknown) =>
    service.call('PATCH', `/v2/databases/${database}`, { body: { proof_assertion } });
  expect((await set(id, 'select true')).body.proof_assertion).toBe('select true');
  expect((await set(id, null)).body.proof_assertion).toBeNull();
  expect((await set(id, '')).body.code).toBe('validation_failed');
  const cache = await fresh({ engine: 'redis' });
  expect(await set(cache.id, 'select true')).toMatchObject({
    ...{ status: 422, body: { code: 'engine_feature_unsupported', engine: 'redis', feature: 'proof_assertion' } },
  });
});
