/** @tier heavy @quarter 1 @covers engines/object_storage/object_storage models/object_storage/bucket_object */
// Programs of others against the S3 endpoint: s3cmd, rclone, the command line of AWS, curl, restic; forms of browsers,
// and chunks that are not as they were signed.
import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { amzDate, hmac, scopeText, signingKey } from '../../../core/protocols/sigv4';
import { startS3, type S3Service } from '../../support/object_storage/s3';

const run = promisify(execFile);

let world: S3Service;
let directory: string;
let bucket: { id: string; name: string };
let key: { access_key_id: string; secret_access_key: string };
let env: NodeJS.ProcessEnv;
const content = randomBytes(20 * 2 ** 20);

beforeAll(async () => {
  world = await startS3();
  directory = mkdtempSync(path.join(tmpdir(), 's3-clients-'));
  mkdirSync(path.join(directory, 'in', 'dir'), { recursive: true });
  writeFileSync(path.join(directory, 'in', 'big'), content);
  writeFileSync(path.join(directory, 'in', 'dir', 'odd ä+%#?&.txt'), 'odd');
  bucket = await world.bucket({ versioning: false });
  key = await world.key();
  env = {
    ...{ PATH: process.env.PATH, HOME: directory, AWS_ACCESS_KEY_ID: key.access_key_id },
    ...{ AWS_SECRET_ACCESS_KEY: key.secret_access_key, AWS_DEFAULT_REGION: 'eu-central-1' },
  };
}, 180_000);

afterAll(async () => {
  await world.close();
  rmSync(directory, { recursive: true, force: true });
});

const command = async (program: string, ...args: string[]): Promise<string> =>
  (await run(program, args, { env, cwd: directory, maxBuffer: 2 ** 26 })).stdout;
const inBucket = async (): Promise<string[]> =>
  (await world.service.call('GET', `/v2/buckets/${bucket.id}/objects?limit=100`)).body.data.map(
    (row: { key: string }) => row.key,
  );
const expectSame = (name: string): void => {
  expect(readFileSync(path.join(directory, name, 'big')).equals(content)).toBe(true);
  expect(readFileSync(path.join(directory, name, 'dir', 'odd ä+%#?&.txt'), 'utf8')).toBe('odd');
};

test('s3cmd puts, lists, gets and removes a tree', async () => {
  const { host } = new URL(world.endpoint);
  const s3cmd = (...args: string[]): Promise<string> =>
    command('s3cmd', '--no-ssl', `--host=${host}`, `--host-bucket=${host}/%(bucket)`, '--region=eu-central-1', ...args);
  await s3cmd('sync', 'in/', `s3://${bucket.name}/s3cmd/`);
  expect(await inBucket()).toEqual(['s3cmd/big', 's3cmd/dir/odd ä+%#?&.txt']);
  expect(await s3cmd('ls', '-r', `s3://${bucket.name}`)).toContain('odd ä+%#?&.txt');
  await s3cmd('sync', `s3://${bucket.name}/s3cmd/`, 'of-s3cmd/');
  expectSame('of-s3cmd');
  await s3cmd('rm', '-r', '--force', `s3://${bucket.name}/s3cmd/`);
  expect(await inBucket()).toEqual([]);
}, 120_000);

test('rclone copies, checks and purges a tree', async () => {
  const remote = `:s3,provider=Other,env_auth,endpoint='${world.endpoint}',region=eu-central-1:${bucket.name}/rclone`;
  await command('rclone', 'copy', 'in', remote, '--s3-upload-cutoff=5M', '--s3-chunk-size=5M');
  await command('rclone', 'check', 'in', remote, '--download');
  await command('rclone', 'copy', remote, 'of-rclone');
  expectSame('of-rclone');
  await command('rclone', 'delete', remote);
  expect(await inBucket()).toEqual([]);
}, 120_000);

test('the command line of AWS syncs a tree and signs URLs', async () => {
  const aws = (...args: string[]): Promise<string> => command('aws', '--endpoint-url', world.endpoint, ...args);
  await aws('s3', 'sync', 'in', `s3://${bucket.name}/aws`);
  await aws('s3', 'mv', `s3://${bucket.name}/aws/big`, `s3://${bucket.name}/moved/big`);
  await aws('s3', 'sync', `s3://${bucket.name}/moved`, 'of-aws');
  expect(readFileSync(path.join(directory, 'of-aws', 'big')).equals(content)).toBe(true);
  const url = (await aws('s3', 'presign', `s3://${bucket.name}/moved/big`)).trim();
  expect((await fetch(url, { headers: { range: 'bytes=0-9' } })).status).toBe(206);
  const listed = JSON.parse(
    await aws('s3api', 'list-objects', '--bucket', bucket.name, '--delimiter', '/', '--max-items', '1'),
  );
  expect(listed.CommonPrefixes).toEqual([{ Prefix: 'aws/' }, { Prefix: 'moved/' }]);
  await aws('s3', 'rm', '--recursive', `s3://${bucket.name}`);
  expect(await inBucket()).toEqual([]);
}, 180_000);

test('curl signs by itself, and a wrong secret is refused', async () => {
  const curl = (secret: string): Promise<string> =>
    command(
      'curl',
      '-s',
      '-H',
      'x-amz-content-sha256: UNSIGNED-PAYLOAD',
      '--aws-sigv4',
      'aws:amz:eu-central-1:s3',
      '-u',
      `${key.access_key_id}:${secret}`,
      '-T',
      'in/dir/odd ä+%#?&.txt',
      `${world.endpoint}/${bucket.name}/curl`,
    );
  expect(await curl('x'.repeat(40))).toContain('<Code>SignatureDoesNotMatch</Code>');
  expect(await curl(key.secret_access_key)).toBe('');
  expect(await inBucket()).toEqual(['curl']);
});

const hasRestic = spawnSync('restic', ['version']).status === 0;
(hasRestic ? test : test.skip)(
  'restic backs up, checks and restores (needs restic)',
  async () => {
    const run = (...args: string[]): Promise<string> =>
      command('restic', '-r', `s3:${world.endpoint}/${bucket.name}/restic`, ...args);
    env.RESTIC_PASSWORD = 'secret';
    await run('init');
    await run('backup', 'in');
    await run('check', '--read-data');
    await run('restore', 'latest', '--target', 'of-restic');
    expectSame('of-restic/in');
  },
  180_000,
);

describe('a form of a browser', () => {
  const inAMinute = (): string => new Date(Date.now() + 60_000).toISOString();
  const form = (
    more: Record<string, string>,
    conditions: unknown[],
    file = 'hello',
    expiration: unknown = inAMinute(),
  ): FormData => {
    const now = new Date();
    const scope = { date: amzDate(now).slice(0, 8), region: 'eu-central-1', service: 's3' };
    const fields: Record<string, string> = {
      ...{ key: 'form/${filename}', 'x-amz-algorithm': 'AWS4-HMAC-SHA256', 'x-amz-date': amzDate(now) },
      'x-amz-credential': `${key.access_key_id}/${scopeText(scope)}`,
    };
    const all = [
      { bucket: bucket.name },
      ['starts-with', '$key', 'form/'],
      ...Object.entries(fields)
        .slice(1)
        .map(([name, value]) => ({ [name]: value })),
    ];
    const policy = Buffer.from(JSON.stringify({ expiration, conditions: [...all, ...conditions] })).toString('base64');
    const signature = hmac(signingKey(key.secret_access_key, scope), policy).toString('hex');
    const data = new FormData();
    for (const [name, value] of Object.entries({ ...fields, policy, 'x-amz-signature': signature, ...more }))
      data.append(name, value);
    data.append('file', new Blob([file]), 'a.txt');
    return data;
  };
  const post = async (data: FormData): Promise<number> =>
    (await fetch(`${world.endpoint}/${bucket.name}`, { method: 'POST', body: data, redirect: 'manual' })).status;

  test('uploads what its policy allows, and nothing else', async () => {
    const type = { 'content-type': 'text/plain' };
    expect(
      await post(
        form({ ...type, success_action_status: '201' }, [
          type,
          ['content-length-range', 1, 10],
          ['eq', '$success_action_status', '201'],
        ]),
      ),
    ).toBe(201);
    expect(await inBucket()).toContain('form/a.txt');
    expect(await post(form({}, [['content-length-range', 1, 10]], 'x'.repeat(11)))).toBe(400);
    expect(await post(form({ key: 'elsewhere' }, []))).toBe(403);
    expect(await post(form(type, []))).toBe(403);
    expect(await post(form({ 'x-amz-signature': 'a'.repeat(64) }, []))).toBe(403);
    expect(await inBucket()).not.toContain('elsewhere');
  });

  test.each([
    ['is over', '2020-01-01T00:00:00Z', 403],
    ['is no time', 'never', 400],
    ['is a day that is not there', '2099-02-31T00:00:00Z', 400],
    ['is a number', 4_102_444_800_000, 400],
    ['is missing', undefined, 400],
  ])('is refused where its expiration %s', async (_, expiration, status) => {
    expect(await post(form({}, [], 'hello', expiration ?? null))).toBe(status);
  });
});

test('chunks that are tampered with, replayed or cut leave no object', async () => {
  const url = new URL(`${world.endpoint}/${bucket.name}/chunks`);
  const now = new Date();
  const scope = { date: amzDate(now).slice(0, 8), region: 'eu-central-1', service: 's3' };
  const secret = signingKey(key.secret_access_key, scope);
  const empty = createHash('sha256').digest('hex');
  const send = async (change: (pieces: string[]) => string[]): Promise<number> => {
    const headers: Record<string, string> = {
      ...{ host: url.host, 'x-amz-content-sha256': 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD' },
      ...{ 'x-amz-date': amzDate(now), 'x-amz-decoded-content-length': '20' },
    };
    const names = Object.keys(headers).sort();
    const lines = names.map((name) => `${name}:${headers[name]}\n`).join('');
    const payload = headers['x-amz-content-sha256'];
    const canonical = `PUT\n${url.pathname}\n\n${lines}\n${names.join(';')}\n${payload}`;
    const hash = createHash('sha256').update(canonical).digest('hex');
    let previous = hmac(secret, `AWS4-HMAC-SHA256\n${amzDate(now)}\n${scopeText(scope)}\n${hash}`).toString('hex');
    const credential = `${key.access_key_id}/${scopeText(scope)}`;
    const signed = `SignedHeaders=${names.join(';')}, Signature=${previous}`;
    const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, ${signed}`;
    const pieces = ['0123456789', 'abcdefghij', ''].map((text) => {
      const of = createHash('sha256').update(text).digest('hex');
      previous = hmac(
        secret,
        `AWS4-HMAC-SHA256-PAYLOAD\n${amzDate(now)}\n${scopeText(scope)}\n${previous}\n${empty}\n${of}`,
      ).toString('hex');
      return `${text.length.toString(16)};chunk-signature=${previous}\r\n${text}\r\n`;
    });
    delete headers.host;
    return (await fetch(url, { method: 'PUT', headers: { ...headers, authorization }, body: change(pieces).join('') }))
      .status;
  };
  expect(await send(([a, b, c]) => [a!, b!.replace('abc', 'abd'), c!])).toBe(403);
  expect(await send(([a, b, c]) => [b!, a!, c!])).toBe(403);
  expect(await send(([a, , c]) => [a!, a!, c!])).toBe(403);
  expect(await send(([a, b]) => [a!, b!])).toBe(400);
  expect(await send(([a, b, c]) => [a!, b!, `${c!}more`])).toBe(400);
  expect(await inBucket()).not.toContain('chunks');
  expect(await send((pieces) => pieces)).toBe(200);
  expect(await inBucket()).toContain('chunks');
});
