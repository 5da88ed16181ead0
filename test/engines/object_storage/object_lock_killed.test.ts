/** @tier heavy @quarter 1 @covers engines/object_storage models/object_storage/bucket_object */
// A service that is killed while versions are written and locked: each lock that was acknowledged holds afterwards, and
// no version is there without the retention that its bucket gives it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { createTestDatabase, type TestDatabase } from '../../support/databases/database';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram } from '../../support/processes/program';
import { codeOf } from '../../support/object_storage/s3';

const ROUNDS = 3;
const WRITERS = 4;
const DAY_MS = 86_400_000;
const dataDir = mkdtempSync(path.join(tmpdir(), 'lock-killed-'));
let database: TestDatabase;

beforeAll(async () => void (database = await createTestDatabase()), 180_000);
afterAll(async () => {
  await endPrograms();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

test('locks that were acknowledged hold after a kill', async () => {
  const port = await freePort();
  const start = () =>
    startProgram({ DATABASE_URL: database.url, PLATFORM_DATA_DIR: dataDir, S3_PORT: String(port), LOG_LEVEL: 'info' });
  let program = start();
  const base = await program.ready();
  const first = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as Record<string, string>;
  const create = async (place: string, body: object) => {
    const headers = { Authorization: `Bearer ${first.key}`, 'X-Svc-Project': first.project_id! };
    const json = { ...headers, 'Content-Type': 'application/json' };
    const answer = await fetch(base + place, { method: 'POST', headers: json, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  const default_retention = { mode: 'compliance', days: 1 };
  const { name: Bucket } = await create('/v2/buckets', { name: 'locked', object_lock: true, default_retention });
  const key = await create('/v2/bucket_access_keys', { name: 'k', grants: [{ permission: 'full' }] });
  const client = new s3.S3Client({
    ...{ endpoint: `http://127.0.0.1:${port}`, region: 'local', forcePathStyle: true, maxAttempts: 1 },
    credentials: { accessKeyId: key.access_key_id!, secretAccessKey: key.secret_access_key! },
  });
  /** Versions by their keys, with the end of the retention that was acknowledged last. */
  const acknowledged = new Map<string, { VersionId: string; until: number }>();
  const write = async (writer: number, until: () => boolean): Promise<void> => {
    for (let turn = 0; !until(); turn += 1) {
      const Key = `${Date.now()}-${writer}-${turn}`;
      const made = await client.send(new s3.PutObjectCommand({ Bucket, Key, Body: 'x' })).catch(() => null);
      if (!made) continue;
      const VersionId = made.VersionId as string;
      acknowledged.set(Key, { VersionId, until: Date.now() + DAY_MS / 2 });
      const RetainUntilDate = new Date(Date.now() + 9 * DAY_MS);
      const Retention = { Mode: 'COMPLIANCE' as const, RetainUntilDate };
      const call = client.send(new s3.PutObjectRetentionCommand({ Bucket, Key, VersionId, Retention }));
      if (await call.catch(() => null)) acknowledged.set(Key, { VersionId, until: RetainUntilDate.getTime() });
    }
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    let isKilled = false;
    const writing = Promise.all(Array.from({ length: WRITERS }, (_, index) => write(index, () => isKilled)));
    // Of a busy machine too, in the middle of the next ones.
    while (acknowledged.size < (round + 1) * 12) await new Promise((resolve) => setTimeout(resolve, 20));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
    program.signal('SIGKILL');
    await program.ended;
    isKilled = true;
    await writing;
    program = start();
    await program.ready();
  }
  expect(acknowledged.size).toBeGreaterThan(20);
  for (const [Key, { VersionId, until }] of acknowledged) {
    const remove = new s3.DeleteObjectCommand({ Bucket, Key, VersionId, BypassGovernanceRetention: true });
    expect([Key, await codeOf(client.send(remove))]).toEqual([Key, 'AccessDenied']);
    const { Retention } = await client.send(new s3.GetObjectRetentionCommand({ Bucket, Key, VersionId }));
    expect(Retention?.Mode).toBe('COMPLIANCE');
    expect(Retention?.RetainUntilDate?.getTime()).toBeGreaterThanOrEqual(until - 1000);
  }
  const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
  for (const { Key, VersionId } of Versions)
    expect(await codeOf(client.send(new s3.GetObjectRetentionCommand({ Bucket, Key, VersionId })))).toBe('done');
  process.stdout.write(`${acknowledged.size} locks acknowledged over ${ROUNDS} kills\n`);
}, 180_000);
