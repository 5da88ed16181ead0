// SIGKILL within one request to the S3 endpoint, in a process of its own, and what has to hold afterwards.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { removeOrphans } from '../../../server/agents/object_storage/object_storage';
import { EMPTY_SHA256, signedHeaders, type Credentials } from '../../../core/protocols/sigv4';
import { named } from '../../../db/statement';
import { openBlobStore } from '../../../engines/object_storage/files/blobs';
import { freePort } from '../processes/free_port';
import { killsAll } from '../processes/kills';
import type { S3Service } from './s3';

/** Of each step; CONFORMANCE_KILLS=all kills at every one. */
const KILLS = 6;
export const WITHIN_MS = killsAll ? 3_600_000 : 120_000;

interface Side {
  world: S3Service;
  credentials: Credentials;
}

interface Step {
  /** The step needs more of the service than objects do. */
  platform?: true;
  method?: string;
  path?: string;
  query?: string;
  headers?: Record<string, string>;
  body?: string;
  lifecycle?: object[];
}

async function run(
  { world, credentials }: Side,
  bucketId: string,
  step: Step,
  killAt: number,
): Promise<number | 'killed'> {
  const port = await freePort();
  const { config, databaseUrl } = { ...world.service.platform };
  const { method = 'GET', body } = step;
  const url = new URL(`http://127.0.0.1:${port}${step.path ?? '/'}`);
  const payloadHash = body ? createHash('sha256').update(body).digest('hex') : EMPTY_SHA256;
  const { headers: own = {} } = step;
  const signed = signedHeaders({ method, url, headers: own, payloadHash, region: 'local', credentials });
  const { host: _, ...headers } = signed as Record<string, string>;
  const given = {
    ...{ bucketId, killAt, step: { ...step, headers } },
    config: { ...config, s3Port: port, s3Listen: ['127.0.0.1'], databaseUrl },
  };
  const child = spawn(process.execPath, [path.join(__dirname, 's3_killed_child.js'), JSON.stringify(given)]);
  let [out, err] = ['', ''];
  child.stdout.on('data', (text) => (out += String(text)));
  child.stderr.on('data', (text) => (err += String(text)));
  const signal = await new Promise((resolve) => child.once('close', (_code, name) => resolve(name)));
  if (signal === 'SIGKILL') return 'killed';
  if (!out) throw new Error(err);
  return Number(out);
}

type Prepare = () => Promise<{ id: string; step: Step; check(): Promise<void> }>;
export type Killed = (name: string, prepare: Prepare) => Promise<void>;

/** Kills a process at continuations of one step, and checks what it left each time. */
export async function killer(world: S3Service): Promise<Killed> {
  const key = await world.key();
  const credentials = { accessKeyId: key.access_key_id, secretAccessKey: key.secret_access_key };
  return (name, prepare) => killAtSteps({ world, credentials }, name, prepare);
}

async function killAtSteps(side: Side, name: string, prepare: Prepare): Promise<void> {
  const first = await prepare();
  const total = (await run(side, first.id, first.step, 0)) as number;
  await first.check();
  const most = killsAll ? total : KILLS;
  let kills = 0;
  for (let index = 0; index < most; index += 1) {
    const at = killsAll ? index + 1 : 1 + Math.floor(((index + Math.random()) * total) / most);
    const { id, step, check } = await prepare();
    if ((await run(side, id, step, at)) === 'killed') kills += 1;
    await check();
  }
  // A step that is done before its turn is not killed: on a busy machine some are.
  expect(kills).toBeGreaterThan(0);
  const swept = await requireWhole(side.world);
  process.stdout.write(`${name}: ${total} continuations, ${kills} kills, ${swept} files without a row swept\n`);
}

/** Usage is that of the rows; after the sweep every file has a row and every row its file. @returns files swept */
async function requireWhole(world: S3Service): Promise<number> {
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
