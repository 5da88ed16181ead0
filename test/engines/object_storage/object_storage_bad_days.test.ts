/** @tier heavy @quarter 1 @covers engines/object_storage/object_storage models/object_storage/bucket_object */
// A full disk, a database that goes away, every length of a key, and objects larger than memory.
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, connect, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import * as s3 from '@aws-sdk/client-s3';
import { UNSIGNED_PAYLOAD, signedHeaders } from '../../../core/protocols/sigv4';
import { createTestDatabase, type TestDatabase } from '../../support/databases/database';
import { freePort } from '../../support/processes/free_port';
import { endPrograms, startProgram } from '../../support/processes/program';
import { codeOf, startS3, type S3Service } from '../../support/object_storage/s3';
import { retryCheck } from '../../support/wait_for';
import { withConfig } from '../../support/config';

const MIB = 2 ** 20;

function isMountable(): boolean {
  if (process.getuid?.() !== 0) return false;
  const directory = mkdtempSync(path.join(tmpdir(), 'mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', directory], { stdio: 'ignore' });
    execFileSync('umount', [directory]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

(isMountable() ? test : test.skip)(
  'a disk that is full in the middle of a PUT: refused, nothing is left, and there is room again (needs root)',
  async () => {
    const directory = mkdtempSync(path.join(tmpdir(), 's3-full-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=12m', 'none', directory]);
    const world = await startS3(withConfig({ s3Dir: directory }));
    try {
      const { id, name: Bucket } = await world.bucket();
      const client = world.client(undefined, { maxAttempts: 1 });
      const put = (Key: string, size: number) =>
        client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Buffer.alloc(size, 'x') }));
      await put('first', 6 * MIB);
      expect(await codeOf(put('large', 10 * MIB))).toBe('ServiceUnavailable');
      const { UploadId } = await client.send(new s3.CreateMultipartUploadCommand({ Bucket, Key: 'parts' }));
      const part = { Bucket, Key: 'parts', UploadId, PartNumber: 1, Body: Buffer.alloc(8 * MIB) };
      expect(await codeOf(client.send(new s3.UploadPartCommand(part)))).toBe('ServiceUnavailable');
      expect((await client.send(new s3.ListObjectsV2Command({ Bucket }))).KeyCount).toBe(1);
      const files = readdirSync(directory, { recursive: true, withFileTypes: true });
      expect(files.filter((entry) => entry.isFile() && entry.name !== 'bucket.json')).toHaveLength(1);
      const { body } = await world.service.call('GET', `/v2/buckets/${id}/usage`);
      expect(body).toMatchObject({ size_bytes: 6 * MIB, object_count: 1 });
      await put('small', 2 * MIB);
    } finally {
      await world.close();
      execFileSync('umount', ['-l', directory]);
      rmSync(directory, { recursive: true });
    }
  },
  120_000,
);

describe('with a program of its own', () => {
  let database: TestDatabase;
  let proxy: Server;
  const sockets = new Set<Socket>();
  const dataDir = mkdtempSync(path.join(tmpdir(), 's3-away-'));
  let port: number;
  let pid: number;
  let client: s3.S3Client;
  let credentials: { accessKeyId: string; secretAccessKey: string };

  beforeAll(async () => {
    database = await createTestDatabase();
    const at = new URL(database.url);
    proxy = createServer((inner) => {
      const local = at.searchParams.get('host');
      const outer = local ? connect(`${local}/.s.PGSQL.${at.port}`) : connect(Number(at.port), at.hostname);
      for (const [one, other] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        sockets.add(one);
        one.on('error', () => undefined).on('close', () => (other.destroy(), sockets.delete(one)));
        one.pipe(other);
      }
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    port = await freePort();
    const through = new URL(database.url);
    through.search = '';
    through.host = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const program = startProgram({
      ...{ DATABASE_URL: String(through), PLATFORM_DATA_DIR: dataDir, S3_PORT: String(port) },
      INGRESS_PORT: String(await freePort()),
    });
    pid = program.pid;
    const base = await program.ready();
    const first = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as Record<string, string>;
    const create = async (place: string, body: object): Promise<Record<string, string>> => {
      const headers = { Authorization: `Bearer ${first.key}`, 'X-Svc-Project': first.project_id as string };
      const answer = await fetch(base + place, {
        ...{ method: 'POST', body: JSON.stringify(body) },
        headers: { ...headers, 'Content-Type': 'application/json' },
      });
      return (await answer.json()) as Record<string, string>;
    };
    await create('/v2/buckets', { name: 'away' });
    const key = await create('/v2/bucket_access_keys', { name: 'k', grants: [{ permission: 'full' }] });
    credentials = { accessKeyId: key.access_key_id as string, secretAccessKey: key.secret_access_key as string };
    client = new s3.S3Client({
      ...{ endpoint: `http://127.0.0.1:${port}`, region: 'local', forcePathStyle: true, maxAttempts: 1, credentials },
    });
    await retryCheck(async () => void (await client.send(new s3.ListObjectsV2Command({ Bucket: 'away' }))));
  }, 120_000);
  afterAll(async () => {
    client?.destroy();
    await endPrograms();
    for (const socket of sockets) socket.destroy();
    proxy?.close();
    await database?.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('the database away: nothing is acknowledged, and everything that was is there afterwards', async () => {
    const put = (Key: string) => client.send(new s3.PutObjectCommand({ Bucket: 'away', Key, Body: Key }));
    await put('before');
    const address = proxy.address() as AddressInfo;
    await new Promise<void>((resolve) => {
      proxy.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
    const during = await Promise.all(['a', 'b', 'c'].map((key) => codeOf(put(key))));
    expect(new Set(during)).toEqual(new Set(['ServiceUnavailable']));
    const read = client.send(new s3.GetObjectCommand({ Bucket: 'away', Key: 'before' }));
    expect(await codeOf(read)).toBe('ServiceUnavailable');
    await new Promise<void>((resolve) => proxy.listen(address.port, '127.0.0.1', resolve));
    await retryCheck(async () => void (await put('after')), 60_000);
    const { Contents } = await client.send(new s3.ListObjectsV2Command({ Bucket: 'away' }));
    expect(Contents?.map(({ Key }) => Key)).toEqual(['after', 'before']);
  }, 120_000);

  /** Sends random content of this size as a stream. @returns its SHA-256 */
  async function upload(key: string, size: number): Promise<string> {
    const url = new URL(`http://127.0.0.1:${port}/away/${key}`);
    const { host: _, ...headers } = signedHeaders({
      ...{ method: 'PUT', url, payloadHash: UNSIGNED_PAYLOAD, region: 'local', credentials },
    });
    const piece = randomBytes(MIB);
    const hash = createHash('sha256');
    const pieces = function* (): Generator<Buffer> {
      for (let index = 0; index < size / MIB; index += 1) {
        piece.writeUInt32BE(index);
        hash.update(piece);
        yield Buffer.from(piece);
      }
    };
    const answer = await fetch(url, {
      ...{ method: 'PUT', headers: { ...headers, 'content-length': String(size) }, duplex: 'half' },
      body: Readable.toWeb(Readable.from(pieces())) as never,
    } as RequestInit);
    expect(answer.status).toBe(200);
    return hash.digest('hex');
  }

  test('1 GB goes in and out in constant memory', async () => {
    const resident = (): number =>
      Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
    const size = Number(process.env.S3_LARGE_BYTES ?? 2 ** 30);
    const before = resident();
    let most = 0;
    const timer = setInterval(() => (most = Math.max(most, resident())), 50);
    const sent = await upload('large', size);
    const { Body } = await client.send(new s3.GetObjectCommand({ Bucket: 'away', Key: 'large' }));
    const hash = createHash('sha256');
    for await (const piece of Body as Readable) hash.update(piece as Buffer);
    clearInterval(timer);
    expect(hash.digest('hex')).toBe(sent);
    process.stdout.write(`${size} bytes: ${before.toFixed()} MB resident before, ${most.toFixed()} MB at most\n`);
    expect(most).toBeLessThan(300);
    await client.send(new s3.DeleteObjectCommand({ Bucket: 'away', Key: 'large' }));
  }, 600_000);
});

describe('keys', () => {
  let world: S3Service;
  beforeAll(async () => void (world = await startS3()), 60_000);
  afterAll(() => world.close());

  test('of every length from 1 to 1024 bytes, of characters of every length, and odd ones', async () => {
    const { name: Bucket } = await world.bucket();
    const client = world.client();
    const characters = ['a', '/', '.', '%', 'é', '€', '𝄞', ' ', '+', '\u0001', '\u007f', '\ud7ff', '\u{10ffff}'];
    const keyOf = (bytes: number): string => {
      let key = '';
      for (let turn = bytes, left = bytes; left > 0; turn += 1) {
        const next = characters[turn % characters.length] as string;
        if (Buffer.byteLength(next) > left) continue;
        key += next;
        left -= Buffer.byteLength(next);
      }
      return key;
    };
    const odd = ['..', '../..', './a', 'a//b', '//', 'a/', '/a', '%2e%2e/', '%', '%zz', 'a?b#c', 'a\\b', '\n', '\t\r'];
    const bytes = Array.from({ length: 255 }, (_, index) => `c${String.fromCodePoint(index + 1)}`);
    const keys = [...new Set([...Array.from({ length: 1024 }, (_, index) => keyOf(index + 1)), ...odd, ...bytes])];
    const each = async (work: (key: string) => Promise<unknown>): Promise<void> => {
      const left = [...keys];
      const worker = async (): Promise<void> => {
        for (let key = left.pop(); key !== undefined; key = left.pop()) await work(key);
      };
      await Promise.all(Array.from({ length: 8 }, worker));
    };
    await each((Key) => client.send(new s3.PutObjectCommand({ Bucket, Key, Body: Key })));
    const listed: string[] = [];
    for await (const page of s3.paginateListObjectsV2({ client, pageSize: 400 }, { Bucket, EncodingType: 'url' }))
      for (const { Key } of page.Contents ?? []) listed.push(decodeURIComponent((Key as string).replaceAll('+', ' ')));
    const inOrder = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    expect(listed).toEqual(inOrder);
    await each(async (Key) => {
      const { Body } = await client.send(new s3.GetObjectCommand({ Bucket, Key }));
      expect(await Body?.transformToString()).toBe(Key);
      await client.send(new s3.DeleteObjectCommand({ Bucket, Key }));
    });
    expect((await client.send(new s3.ListObjectsV2Command({ Bucket }))).KeyCount).toBe(0);
    const long = client.send(new s3.PutObjectCommand({ Bucket, Key: 'k'.repeat(1025), Body: 'x' }));
    expect(await codeOf(long)).toBe('KeyTooLongError');
  }, 180_000);
});
