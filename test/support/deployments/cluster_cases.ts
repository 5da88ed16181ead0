// A service of several processes on one port, and what can be seen of them.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../databases/database';
import { endPrograms, startProgram, type Program } from '../processes/program';

export let home: string;

export const databases: TestDatabase[] = [];

export const WRITES = 40;

export const ATTEMPTS = 20;

export let program: Program;

export let doomed: Program;

export let sql: pg.Client;

export let base: string;

export let first: { key: string; project_id: string };

export async function settingsOf(name: string) {
  const database = await createTestDatabase();
  databases.push(database);
  return {
    DATABASE_URL: database.url,
    PLATFORM_DATA_DIR: path.join(home, name),
    WEB_CONCURRENCY: '2',
    SHUTDOWN_GRACE_SECONDS: '20',
  };
}

/** To be called where tests are declared. */
export function setUpCluster(): void {
  beforeAll(async () => {
    home = mkdtempSync(path.join(tmpdir(), 'platform-cluster-'));
    const settings = {
      ...(await settingsOf('one')),
      RATE_LIMIT_READ: '1000000',
      RATE_LIMIT_WRITE: String(WRITES),
      RATE_LIMIT_FAILED_AUTH: String(ATTEMPTS),
    };
    program = startProgram(settings);
    doomed = startProgram({ ...(await settingsOf('doomed')), WORKER: 'separate' });
    base = await program.ready();
    await doomed.ready();
    first = JSON.parse(readFileSync(path.join(home, 'one', 'first-key.json'), 'utf8'));
    sql = new pg.Client({ connectionString: settings.DATABASE_URL });
    await sql.connect();
  });
  afterAll(async () => {
    await sql.end();
    await endPrograms();
    for (const database of databases.splice(0)) await database.drop();
    rmSync(home, { recursive: true, force: true });
  });
}
