/** @tier heavy @quarter 4 @covers engines/object_storage/object_storage models/object_storage/bucket_object */
// A service that is killed while clients write: what was acknowledged is there and whole, usage is exact, and of what
// was not acknowledged no file stays.
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import pg from 'pg';
import { removeOrphans } from '../../../server/agents/object_storage/object_storage';
import { openControlDatabase } from '../../../db/control_database';
import { openBlobStore } from '../../../engines/object_storage/files/blobs';
import { createTestDatabase, type TestDatabase } from '../../support/databases/database';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram } from '../../support/processes/program';

/** The sweep reads no content. */
const NO_SEALS = { seal: () => '', open: () => '' };
const ROUNDS = 4;
const WRITERS = 8;

let database: TestDatabase;
let sql: pg.Client;
const dataDir = mkdtempSync(path.join(tmpdir(), 's3-killed-'));
const objects = path.join(dataDir, 'objects');

beforeAll(async () => {
  database = await createTestDatabase();
  sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
}, 180_000);

afterAll(async () => {
  await endPrograms();
  await sql.end();
  await database.drop();
  rmSync(dataDir, { recursive: true, force: true });
});

const md5 = (content: Buffer): string => createHash('md5').update(content).digest('hex');

test('nothing acknowledged is lost, and nothing else stays', async () => {
  const port = await freePort();
  const start = () =>
    startProgram({ DATABASE_URL: database.url, PLATFORM_DATA_DIR: dataDir, S3_PORT: String(port), LOG_LEVEL: 'info' });
  let program = start();
  const base = await program.ready();
  const first = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as Record<string, string>;
  const create = async (place: string, body: object) => {
    const headers = {
      Authorization: `Bearer ${first.key}`,
      'X-Svc-Project': first.project_id!,
      'Content-Type': 'application/json',
    };
    const answer = await fetch(base + place, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  const { id, name: Bucket } = await create('/v2/buckets', { name: 'killed', versioning: true });
  const key = await create('/v2/bucket_access_keys', { name: 'k', grants: [{ permission: 'full' }] });
  const client = new s3.S3Client({
    ...{ endpoint: `http://127.0.0.1:${port}`, region: 'local', forcePathStyle: true, maxAttempts: 1 },
    credentials: { accessKeyId: key.access_key_id!, secretAccessKey: key.secret_access_key! },
  });
  /** Versions that were acknowledged, with the hash of their content; false once their deletion was. */
  const acknowledged = new Map<string, string | false>();
  const write = async (writer: number, until: () => boolean): Promise<void> => {
    for (let turn = 0; !until(); turn += 1) {
      const content = randomBytes(1 + ((turn * 7919) % 200_000));
      const Key = `w${writer}/${turn % 5}`;
      const made = await client.send(new s3.PutObjectCommand({ Bucket, Key, Body: content })).catch(() => null);
      if (!made) continue;
      const name = `${Key} ${made.VersionId}`;
      acknowledged.set(name, md5(content));
      if (turn % 3) continue;
      // Whether it went is not known until it is acknowledged.
      acknowledged.delete(name);
      const gone = await client
        .send(new s3.DeleteObjectCommand({ Bucket, Key, VersionId: made.VersionId }))
        .catch(() => null);
      if (gone) acknowledged.set(name, false);
    }
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    let isKilled = false;
    const writing = Promise.all(Array.from({ length: WRITERS }, (_, index) => write(index, () => isKilled)));
    await new Promise((resolve) => setTimeout(resolve, 700 + round * 233));
    program.signal('SIGKILL');
    await program.ended;
    isKilled = true;
    await writing;
    program = start();
    await program.ready();
  }
  expect(acknowledged.size).toBeGreaterThan(20);
  for (const [name, hash] of acknowledged) {
    const [Key, VersionId] = name.split(' ');
    const found = await client.send(new s3.GetObjectCommand({ Bucket, Key, VersionId })).catch(() => null);
    expect([name, found && md5(Buffer.from(await found.Body!.transformToByteArray()))]).toEqual([name, hash || null]);
  }
  program.signal('SIGTERM');
  await program.ended;
  const control = openControlDatabase(database.url, { poolSize: 2 });
  const swept = await removeOrphans(control, openBlobStore(objects, NO_SEALS), 0);
  await control.close();
  process.stdout.write(`${acknowledged.size} acknowledged, ${swept} files of broken uploads swept\n`);
  const { rows } = await sql.query(
    `select (select array_agg(file_id) from bucket_objects where file_id is not null) as files,
      (select array_agg(file_id) from bucket_garbage) as garbage,
      (select sum(size)::bigint from bucket_objects) as size, u.* from bucket_usage u where bucket_id = $1`,
    [id],
  );
  const [{ files, garbage, size, size_bytes }] = rows as [Record<string, never>];
  expect(size_bytes).toBe(size);
  const there = readdirSync(objects, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(
    there
      .map(({ name }) => name)
      .filter((name) => name !== 'bucket.json')
      .sort(),
  ).toEqual([...((files ?? []) as string[]), ...((garbage ?? []) as string[])].sort());
}, 180_000);
