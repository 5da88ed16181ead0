// The whole program in a process of its own, which a test kills with -9 and starts again on the same data.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { Patient } from './bad_days';
import { createTestDatabase } from '../databases/database';
import { makeApplication, type TestApplication, type Workplace } from '../deployments/deploy';
import { freePort } from './free_port';
import { startGitServer, type GitFiles } from '../git/git_server';
import { startProgram, type Program } from './program';
import type { CallOptions } from '../service';
import { waitFor } from '../wait_for';

export interface Plant extends Workplace, Patient {
  application(files: GitFiles, settings?: object): Promise<TestApplication>;
  ingressPort: number;
  databaseUrl: string;
  dataDir: string;
  /** Where it serves since it was started the last time, and the key of its owner. */
  access(): { url: string; key: string; project: string };
  /** kill -9, and waits for the end. */
  kill(): Promise<void>;
  /** SIGTERM, and waits for the end. */
  stop(): Promise<void>;
  /** Starts it where it does not run, from now on with these settings too; resolves when it serves. */
  start(settings?: Record<string, string>): Promise<void>;
  /** The most that it has had in memory since it was started the last time, in MB of 2^20 bytes. */
  peakMemoryMb(): number;
  /** What it has said since it was started the last time. */
  said(): string;
  /** Deletes all applications, and ends it. */
  close(): Promise<void>;
}

/** Its ingress always has the same port. */
export async function startPlant(settings: Record<string, string> = {}): Promise<Plant> {
  const [database, git, ingressPort] = [await createTestDatabase(), await startGitServer(), await freePort()];
  const dataDir = mkdtempSync(path.join(tmpdir(), 'platform-killed-'));
  const sql = new pg.Pool({ connectionString: database.url, max: 2 });
  const given = {
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: dataDir,
    INGRESS_PORT: String(ingressPort),
    ALLOW_HTTP_GIT: '1',
    ALLOW_PRIVATE_ADDRESSES: '1',
    RATE_LIMIT_READ: '100000',
    RATE_LIMIT_WRITE: '100000',
    RATE_LIMIT_DEPLOY: '100000',
    ...settings,
  };
  let program: Program | null = null;
  let base = '';
  const key = (): { key: string; project_id: string } =>
    JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8'));
  const plant: Plant = {
    git,
    ingressPort,
    databaseUrl: database.url,
    dataDir,
    runtimeDir: path.join(dataDir, 'runtime'),
    platform: { config: { ingressPort } },
    sql: async (text, values) => (await sql.query(text, values)).rows,
    call: (method, place, options) => call(base, key(), method, place, options),
    application: (files, wanted = {}) => makeApplication(plant, files, wanted),
    access: () => ({ url: base, key: key().key, project: key().project_id }),
    peakMemoryMb() {
      const status = readFileSync(`/proc/${program?.pid}/status`, 'utf8');
      return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
    },
    said: () => (program ? program.out() + program.err() : ''),
    async kill() {
      program?.signal('SIGKILL');
      await program?.ended;
    },
    async stop() {
      program?.signal('SIGTERM');
      await program?.ended;
    },
    async start(changed = {}) {
      Object.assign(given, changed);
      program = startProgram(given);
      base = await program.ready();
    },
    async close() {
      await clear(plant).finally(() => plant.stop());
      await sql.end();
      await git.close();
      await database.drop();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
  await plant.start();
  return plant;
}

/** One request to the API of a process. */
export async function call(
  base: string,
  { key, project_id }: { key: string; project_id: string },
  method: string,
  place: string,
  { body }: CallOptions = {},
): ReturnType<Plant['call']> {
  const headers = {
    Authorization: `Bearer ${key}`,
    'X-Svc-Project': project_id,
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
  };
  const response = await fetch(base + place, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: text ? JSON.parse(text) : null };
}

async function clear(plant: Plant): Promise<void> {
  for (const { id } of await plant.sql<{ id: string }>('select id from applications where deleted_at is null'))
    await plant.call('DELETE', `/v2/applications/${id}`);
  await waitFor(
    'the end of all applications',
    async () => (await plant.sql('select 1 from applications')).length === 0,
    40_000,
  );
}
