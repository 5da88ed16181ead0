// What tools/bench/object_storage/object_storage.ts measures: a service with its database and a bucket, and the bare
// server beside it.
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { Credentials } from '../../../core/protocols/sigv4';
import { openEmbedded } from '../../../server/platform/embedded';
import { startApi, startReference, type Server } from '../processes';
import { freePort } from '../../../test/support/processes/free_port';

export interface World {
  service: Server;
  endpoint: string;
  bare: Server;
  directory: string;
  credentials: Credentials;
  bucket: { id: string; name: string };
  /** Another one, with few objects. */
  small: { id: string; name: string };
  sql: pg.Client;
  stop(): Promise<void>;
}

export async function startWorld(profile: string | undefined): Promise<World> {
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'bench-s3-'));
  // The engine of the database runs as another user where we are root.
  chmodSync(dataDir, 0o711);
  const database = await openEmbedded({ dataDir });
  const s3Port = await freePort();
  const flags = profile ? ['--cpu-prof', `--cpu-prof-dir=${path.resolve(profile)}`] : [];
  const service = await startApi({ node: process.execPath, flags }, dataDir, {
    ...{ S3_PORT: String(s3Port), INGRESS_PORT: String(await freePort()), DATABASE_URL: database.url },
    ...{ DNS_PORT: '0', SMTP_PORTS: '0', MX_PORT: '0', REGISTRY_PORT: '0' },
  });
  const first = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8')) as Record<string, string>;
  const create = apiOf(service.port, first);
  const bucketOf = async (name: string) => (await create('/v2/buckets', { name })) as unknown as World['bucket'];
  const [bucket, small] = [await bucketOf('bench'), await bucketOf('bench-small')];
  const key = await create('/v2/bucket_access_keys', { name: 'bench', grants: [{ permission: 'full' }] });
  const directory = path.join(dataDir, 'bare');
  mkdirSync(directory);
  const bare = await startReference({ node: process.execPath }, 'files', [directory]);
  const sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
  return {
    ...{ service, directory, bucket, small, sql, bare, endpoint: `http://127.0.0.1:${s3Port}` },
    credentials: { accessKeyId: key.access_key_id as string, secretAccessKey: key.secret_access_key as string },
    async stop() {
      await bare.stop();
      await sql.end();
      await service.stop();
      await database.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** POST as the first user. */
function apiOf(port: number, first: Record<string, string>) {
  return async (place: string, body: object): Promise<Record<string, string>> => {
    const headers = { Authorization: `Bearer ${first.key}`, 'X-Svc-Project': first.project_id as string };
    const answer = await fetch(`http://127.0.0.1:${port}${place}`, {
      ...{ method: 'POST', body: JSON.stringify(body) },
      headers: { ...headers, 'Content-Type': 'application/json' },
    });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as Record<string, string>;
  };
}
