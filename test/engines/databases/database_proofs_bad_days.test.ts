/** @tier heavy @quarter 1 @covers jobs/databases/database_proof.ts jobs/databases/database_proof */
// Proofs on bad days: the control plane is killed at each step, the store is away, refuses its key or has lost a file,
// there is no room, and the database itself is restored meanwhile.
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import * as s3 from '@aws-sdk/client-s3';
import { openStoreTrial, type StoreTrial } from '../../support/databases/backup_store';
import {
  connect,
  describePostgresqlWithTools,
  openDatabaseWorkshop,
  type DatabaseWorkshop,
} from '../../support/databases/database_hall';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { processesWith, signalAll } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';

const PATIENCE_MS = 120_000;
/** Into a proof: while it is fetched, recovered, verified, read and removed. */
const MOMENTS_MS = [50, 400, 900, 1_600, 2_400, 3_300];

jest.setTimeout(600_000);

describePostgresqlWithTools(() => {
  let place: DatabaseWorkshop;
  let bucket: StoreTrial;
  let plant: Plant;
  let id = '';
  let backup = '';

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    bucket = await openStoreTrial();
    plant = await startPlant({ ...place.settings, ...storeSettings() });
    id = (await plant.call('POST', '/v2/databases', { body: { name: 'notes', engine: 'postgresql' } })).body.id;
    await waitFor('the database', async () => ((await shown()).status === 'available' ? true : null), PATIENCE_MS);
    const { body } = await plant.call('GET', `/v2/databases/${id}/credentials`);
    await connect(body.endpoints[0].connection_string, async (client) => {
      await client.query('create table notes as select generate_series(1, 200000) as id');
    });
    backup = (await plant.call('POST', `/v2/databases/${id}/backups`, { body: {} })).body.id;
    await waitFor('the backup', async () => ((await shownBackup()).status === 'completed' ? true : null), PATIENCE_MS);
  }, PATIENCE_MS * 3);
  afterAll(async () => {
    await plant?.close();
    await bucket?.close();
    signalAll(processesWith(`${place.databaseDir}/`).map(({ pid }) => pid));
    place.clear();
  }, PATIENCE_MS);

  const storeSettings = (): Record<string, string> => {
    const { url, bucket: name, prefix, accessKeyId, secretAccessKey } = bucket.options;
    return {
      BACKUP_STORE: `s3://${name}/${prefix.replace(/\/$/, '')}`,
      BACKUP_STORE_URL: url,
      BACKUP_STORE_REGION: 'eu-central-1',
      BACKUP_STORE_ACCESS_KEY: accessKeyId,
      BACKUP_STORE_SECRET_KEY: secretAccessKey,
    };
  };
  const shown = async () => (await plant.call('GET', `/v2/databases/${id}`)).body;
  const shownBackup = async () => (await plant.call('GET', `/v2/databases/${id}/backups/${backup}`)).body;
  const ask = async (): Promise<void> =>
    void expect((await plant.call('POST', `/v2/databases/${id}/backups/${backup}/prove`)).status).toBe(202);
  /** The task of the next look does not wait for its time. */
  const status = (wanted: string[]) =>
    waitFor(
      `a proof that is ${wanted.join(' or ')}`,
      async () => {
        await plant.sql(`update schedules set next_at = now() where id = 'prove_backups' and lease_until is null`);
        const row = await shownBackup();
        return wanted.includes(row.proof_status) && (row.proof_status !== 'waiting' || row.proof_failure) ? row : null;
      },
      PATIENCE_MS,
    );
  const scratch = (): string[] => readdirSync(place.databaseDir).filter((name) => name.includes('prf_'));
  const nothingLeft = () =>
    waitFor(
      'the end of what is left of a proof',
      async () => (scratch().length || processesWith(`${place.databaseDir}/prf_`).length ? null : true),
      PATIENCE_MS,
    );

  test('killed at each step, it begins anew, and nothing is left', async () => {
    await status(['proven']);
    for (const ms of MOMENTS_MS) {
      await ask();
      await status(['running']);
      await sleep(ms);
      await plant.kill();
      await plant.start().catch(() => plant.start());
      expect(await status(['proven', 'failed'])).toMatchObject({ proof_status: 'proven', proof_rows: 200_000 });
      await nothingLeft();
    }
  });

  test('it ends where the database itself is restored, and comes after it', async () => {
    await ask();
    await status(['running']);
    expect((await plant.call('POST', `/v2/databases/${id}/restore`, { body: { backup_id: backup } })).status).toBe(202);
    const row = await status(['waiting', 'proven']);
    if (row.proof_status === 'waiting') expect(row.proof_failure).toMatch(/is being restored/);
    await nothingLeft();
    await waitFor('the restore', async () => ((await shown()).status === 'available' ? true : null), PATIENCE_MS);
    await ask();
    await status(['proven']);
  });

  test('a file that the store has lost or that is another one is told', async () => {
    const key = `${bucket.options.prefix}${id}/backups/${backup}/base/base.tar.gz`;
    const client = bucket.world.client();
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: bucket.options.bucket, Key: key }));
    const whole = Buffer.from(await (Body as { transformToByteArray(): Promise<Uint8Array> }).transformToByteArray());
    const put = (bytes: Buffer) =>
      client.send(new s3.PutObjectCommand({ Bucket: bucket.options.bucket, Key: key, Body: bytes }));
    const spoiled = Buffer.from(whole);
    const middle = Math.floor(whole.length / 2);
    spoiled[middle] = (spoiled[middle] as number) ^ 1;
    try {
      for (const [change, failure] of [
        [() => put(spoiled), /not what was stored there/],
        [() => put(whole.subarray(0, middle)), /not what was stored there/],
        [
          () => client.send(new s3.DeleteObjectCommand({ Bucket: bucket.options.bucket, Key: key })),
          /no longer in the backup store/,
        ],
      ] as const) {
        await change();
        await ask();
        const told = await status(['proven', 'failed']);
        expect([told.proof_status, told.proof_failure]).toEqual(['failed', expect.stringMatching(failure)]);
        await nothingLeft();
      }
    } finally {
      await put(whole);
    }
    await ask();
    await status(['proven']);
  });

  test('a key that the store refuses is told, and a store that is away is waited for', async () => {
    const restartWith = async (settings: Record<string, string>): Promise<void> => {
      await plant.kill();
      await plant.start(settings).catch(() => plant.start());
    };
    await restartWith({ BACKUP_STORE_SECRET_KEY: 'another-secret' });
    await ask();
    expect(await status(['proven', 'failed'])).toMatchObject({
      ...{ proof_status: 'failed', proof_failure: expect.stringMatching(/refuses a request/) },
    });
    await restartWith({ ...storeSettings(), BACKUP_STORE_URL: 'http://127.0.0.1:9' });
    await ask();
    expect(await status(['proven', 'failed', 'waiting'])).toMatchObject({
      ...{ proof_status: 'waiting', proof_failure: expect.stringMatching(/does not respond.* waits for it/) },
    });
    await nothingLeft();
    await restartWith(storeSettings());
    await ask();
    await status(['proven']);
  });
});
