/** @tier heavy @quarter 3 @covers engines/object_storage/object_storage models/object_storage/bucket_object */
// SIGKILL within one PUT, one completion of an upload, one DELETE (of an object, of a version, of several keys at once)
// and one pass of the lifecycle, at continuations of each. What was acknowledged stays, the rest is there as a whole or
// not at all, usage is exact, and the sweep leaves no file without a row and no row without a file.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import * as s3 from '@aws-sdk/client-s3';
import { removeOrphans } from '../../../server/agents/object_storage';
import { EMPTY_SHA256, signedHeaders } from '../../../core/protocols/sigv4';
import { named } from '../../../db/statement';
import { openBlobStore } from '../../../engines/object_storage/files/blobs';
import { freePort } from '../../support/processes/free_port';
import { startS3, type S3Service } from '../../support/object_storage/s3';
import { killsAll } from '../../support/processes/kills';

/** Of each step; CONFORMANCE_KILLS=all kills at every one. */
const KILLS = 6;
const WITHIN_MS = killsAll ? 3_600_000 : 120_000;
const PART = 'p'.repeat(5 * 2 ** 20);

let world: S3Service;
let client: s3.S3Client;
let credentials: { accessKeyId: string; secretAccessKey: string };

beforeAll(async () => {
  world = await startS3();
  client = world.client();
  const key = await world.key();
  credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
}, 180_000);
afterAll(() => world.close());

interface Step {
  method?: string;
  path?: string;
  query?: string;
  headers?: Record<string, string>;
  body?: string;
  lifecycle?: object[];
}

async function run(bucketId: string, step: Step, killAt: number): Promise<number | 'killed'> {
  const port = await freePort();
  const { config, databaseUrl } = { ...world.service.platform };
  const { method = 'GET', body } = step;
  const url = new URL(`http://127.0.0.1:${port}${step.path ?? '/'}`);
  const payloadHash = body ? createHash('sha256').update(body).digest('hex') : EMPTY_SHA256;
  const { host: _, ...headers } = signedHeaders({ method, url, payloadHash, region: 'local', credentials });
  const given = {
    ...{ bucketId, killAt, step: { ...step, headers } },
    config: { ...config, s3Port: port, s3Listen: ['127.0.0.1'], databaseUrl },
  };
  const child = spawn(process.execPath, [
    path.join(__dirname, '../../support/object_storage/s3_killed_child.js'),
    JSON.stringify(given),
  ]);
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += String(text)));
  child.stderr.on('data', (text) => (err += String(text)));
  const signal = await new Promise((resolve) => child.once('close', (_code, name) => resolve(name)));
  if (signal === 'SIGKILL') return 'killed';
  if (!out) throw new Error(err);
  return Number(out);
}

/** @param check gets whether the step was acknowledged */
async function killed(name: string, prepare: () => Promise<{ id: string; step: Step; check(): Promise<void> }>) {
  const first = await prepare();
  const total = (await run(first.id, first.step, 0)) as number;
  await first.check();
  const most = killsAll ? total : KILLS;
  let kills = 0;
  for (let index = 0; index < most; index += 1) {
    const at = killsAll ? index + 1 : 1 + Math.floor(((index + Math.random()) * total) / most);
    const { id, step, check } = await prepare();
    if ((await run(id, step, at)) === 'killed') kills += 1;
    await check();
  }
  // A step that is done before its turn is not killed: on a busy machine some are.
  expect(kills).toBeGreaterThan(0);
  const swept = await requireWhole();
  process.stdout.write(`${name}: ${total} continuations, ${kills} kills, ${swept} files without a row swept\n`);
}

/** Usage is that of the rows; after the sweep every file has a row and every row its file. @returns files swept */
async function requireWhole(): Promise<number> {
  const { database, config } = world.service.platform;
  const swept = await removeOrphans(database, openBlobStore(config.s3Dir, world.service.platform.secrets), 0);
  const sql = (text: string) => database.query<Record<string, string>>(named(text), []);
  const wrong = await sql(`select u.bucket_id from bucket_usage u where u.size_bytes <>
    coalesce((select sum(size) from bucket_objects o where o.bucket_id = u.bucket_id), 0) or u.upload_bytes <>
    coalesce((select sum(p.size) from bucket_upload_parts p join bucket_uploads b on b.id = p.upload_id
      where b.bucket_id = u.bucket_id), 0)`);
  expect(wrong).toEqual([]);
  const rows = await sql(`select file_id from bucket_objects where file_id is not null
    union select file_id from bucket_object_parts union select file_id from bucket_upload_parts
    union select file_id from bucket_garbage`);
  const files = readdirSync(config.s3Dir, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() && entry.name !== 'bucket.json' ? [entry.name] : [],
  );
  const known = new Set(rows.map(({ file_id }) => file_id));
  expect(files.filter((file) => !known.has(file))).toEqual([]);
  const garbage = await sql('select file_id from bucket_garbage');
  const there = new Set([...files, ...garbage.map(({ file_id }) => file_id)]);
  expect([...known].filter((file) => !there.has(file!))).toEqual([]);
  return swept;
}

async function contentOf(Bucket: string, Key: string): Promise<string | null> {
  const found = await client.send(new s3.GetObjectCommand({ Bucket, Key })).catch(() => null);
  return found ? ((await found.Body?.transformToString()) ?? null) : null;
}
const put = (Bucket: string, Key: string, Body: string) => client.send(new s3.PutObjectCommand({ Bucket, Key, Body }));

test(
  'PUT',
  async () => {
    const { id, name } = await world.bucket();
    await killed('PUT', async () => {
      await put(name, 'a', 'before');
      const body = `after ${'x'.repeat(100_000)}`;
      return {
        ...{ id, step: { method: 'PUT', path: `/${name}/a`, body } },
        check: async () => expect(['before', body]).toContain(await contentOf(name, 'a')),
      };
    });
  },
  WITHIN_MS,
);

test(
  'completion of a multipart upload',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    await killed('complete', async () => {
      const Key = 'a';
      const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key }));
      const parts: s3.CompletedPart[] = [];
      for (const [index, Body] of [PART, 'end'].entries()) {
        const PartNumber = index + 1;
        const { ETag } = await client.send(new s3.UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }));
        parts.push({ PartNumber, ETag });
      }
      const listed = parts.map(
        ({ PartNumber, ETag }) => `<Part><PartNumber>${PartNumber}</PartNumber><ETag>${ETag}</ETag></Part>`,
      );
      const body = `<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`;
      return {
        ...{ id, step: { method: 'POST', path: `/${Bucket}/${Key}?uploadId=${UploadId}`, body } },
        async check() {
          // Where it is not there yet, the upload is: it is completed again.
          if ((await contentOf(Bucket, Key)) === null) {
            const MultipartUpload = { Parts: parts };
            await client.send(new s3.CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }));
          }
          expect(await contentOf(Bucket, Key)).toBe(`${PART}end`);
          await client.send(new s3.DeleteObjectCommand({ Bucket, Key }));
        },
      };
    });
  },
  WITHIN_MS + 60_000,
);

test(
  'DELETE',
  async () => {
    const { id, name } = await world.bucket();
    await killed('DELETE', async () => {
      await put(name, 'a', 'there');
      return {
        ...{ id, step: { method: 'DELETE', path: `/${name}/a` } },
        check: async () => expect(['there', null]).toContain(await contentOf(name, 'a')),
      };
    });
  },
  WITHIN_MS,
);

test(
  'DELETE of a version',
  async () => {
    const { id, name: Bucket } = await world.bucket({ versioning: true });
    await killed('DELETE of a version', async () => {
      const { VersionId: first } = await put(Bucket, 'a', 'first');
      const { VersionId: second } = await put(Bucket, 'a', 'second');
      return {
        ...{ id, step: { method: 'DELETE', path: `/${Bucket}/a?versionId=${second}` } },
        // With the latest one gone, the one before it is the latest.
        async check() {
          const isThere = (await contentOf(Bucket, 'a')) === 'second';
          const { Versions = [] } = await client.send(new s3.ListObjectVersionsCommand({ Bucket }));
          expect(Versions.filter(({ IsLatest }) => IsLatest).map(({ VersionId }) => VersionId)).toEqual([
            isThere ? second : first,
          ]);
          if (!isThere) expect(await contentOf(Bucket, 'a')).toBe('first');
          for (const { Key, VersionId } of Versions)
            await client.send(new s3.DeleteObjectCommand({ Bucket, Key, VersionId }));
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'DeleteObjects',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    const keys = ['a', 'b', 'c'];
    await killed('DeleteObjects', async () => {
      for (const Key of keys) await put(Bucket, Key, 'there');
      const body = `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join('')}</Delete>`;
      return {
        ...{ id, step: { method: 'POST', path: `/${Bucket}?delete`, body } },
        async check() {
          const found = await Promise.all(keys.map((key) => contentOf(Bucket, key)));
          expect([
            ['there', 'there', 'there'],
            [null, null, null],
          ]).toContainEqual(found);
        },
      };
    });
  },
  WITHIN_MS,
);

test(
  'a pass of the lifecycle',
  async () => {
    const { id, name: Bucket } = await world.bucket();
    const rule = { id: 'r', enabled: true, prefix: 'old/', expire_after_days: 1, expire_noncurrent_after_days: 1 };
    await killed('lifecycle', async () => {
      for (const Key of ['old/a', 'old/b', 'kept']) await put(Bucket, Key, Key);
      await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: 'old/upload' }));
      return {
        ...{ id, step: { lifecycle: [{ ...rule, abort_incomplete_uploads_after_days: 1 }] } },
        async check() {
          expect(await contentOf(Bucket, 'kept')).toBe('kept');
          for (const Key of ['old/a', 'old/b']) expect([Key, null]).toContain(await contentOf(Bucket, Key));
        },
      };
    });
  },
  WITHIN_MS,
);
