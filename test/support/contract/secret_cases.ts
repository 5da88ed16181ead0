// A service with all that is logged and stored in reach.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { createTestDatabase, type TestDatabase } from '../databases/database';
import { endPrograms, startProgram, type Program } from '../processes/program';

export const SEALING = Buffer.from('f00dfeedcafe00112233445566778899aabbccddeeff1029384756abcdef0123', 'hex');

export const dataDir = mkdtempSync(path.join(tmpdir(), 'platform-secrets-'));

export let database: TestDatabase;

export let sql: pg.Client;

export let program: Program;

export let base: string;

export let firstKey: { key: string; project_id: string };

/** To be called where tests are declared. */
export function setUpSecrets(): void {
  beforeAll(async () => {
    database = await createTestDatabase();
    sql = new pg.Client({ connectionString: database.url });
    await sql.connect();
    program = startProgram({
      DATABASE_URL: database.url,
      PLATFORM_DATA_DIR: dataDir,
      PLATFORM_SECRET_KEY: SEALING.toString('base64'),
      LOG_LEVEL: 'trace',
      WORKER: 'in_process',
    });
    base = await program.ready();
    firstKey = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8'));
  }, 30_000);
  afterAll(async () => {
    await endPrograms();
    await sql.end();
    await database.drop();
    rmSync(dataDir, { recursive: true, force: true });
  });
}
