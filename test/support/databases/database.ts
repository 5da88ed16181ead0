// Private databases for tests: copies of one template that has all migrations, made once for each state of the sources.
import { createHash, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import knex from 'knex';
import pg from 'pg';
import { migrate } from '../../../db/migrate';
import { openEmbedded } from '../../../server/platform/embedded';

const ROOT = path.resolve(__dirname, '../../..');
const MIGRATIONS = path.join(ROOT, 'migrations');
/** What decides on the schema. */
const SOURCES = [MIGRATIONS, path.join(ROOT, 'db/migrate.ts')];
const FLAGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=300'].flatMap(
  (setting) => ['-c', setting],
);
const STALE_DATABASE_SECONDS = 600;
const STALE_TEMPLATE_SECONDS = 2 * 3600;

export interface TestDatabase {
  url: string;
  drop(): Promise<void>;
}

/**
 * An empty database with the current schema, in about 20 ms. Needs openTestServer() in this process or a parent of it.
 */
export async function createTestDatabase(): Promise<TestDatabase> {
  const { TEST_ADMIN_URL: admin, TEST_TEMPLATE: template } = process.env;
  if (!admin || !template)
    throw new Error('no test server: call openTestServer() first (jest does it in its global setup)');
  return copyOf(admin, template);
}

/** A database with nothing in it, not even the schema. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  const admin = process.env.TEST_ADMIN_URL;
  if (!admin) throw new Error('no test server: call openTestServer() first (jest does it in its global setup)');
  return copyOf(admin, 'template0');
}

/**
 * Starts the server of the tests, or takes that of TEST_DATABASE_URL (its user must be allowed to create databases),
 * and makes the template. The server stops when the processes that opened it have ended.
 */
export async function openTestServer(): Promise<void> {
  const url = process.env.TEST_DATABASE_URL ?? (await openEmbedded({ dataDir: scratch(), flags: FLAGS })).url;
  process.env.TEST_ADMIN_URL = url;
  process.env.TEST_TEMPLATE = await prepareTemplate(url);
}

/** Where temporary data are fastest: memory if there is room, since containers often have 64 MB there. */
export function fastDirectory(): string {
  return hasRoom('/dev/shm') ? '/dev/shm' : os.tmpdir();
}

function scratch(): string {
  return path.join(fastDirectory(), `platform-api-test-${os.userInfo().uid}`);
}

function hasRoom(directory: string): boolean {
  if (!fs.existsSync(directory)) return false;
  const { bavail, bsize } = fs.statfsSync(directory);
  return bavail * bsize > 2e9;
}

/** Two runs at once: the lock lets one of them make the template. */
async function prepareTemplate(url: string): Promise<string> {
  const name = `template_${hashOf(SOURCES)}`;
  await withClient(url, async (admin) => {
    await admin.query('select pg_advisory_lock(727)');
    await dropStale(admin, name);
    const { rowCount } = await admin.query('select 1 from pg_database where datname = $1 and datistemplate', [name]);
    if (!rowCount) await makeTemplate(admin, url, name);
    await admin.query(`comment on database "${name}" is '${now()}'`); // when it was last wanted
  });
  return name;
}

async function makeTemplate(admin: pg.Client, url: string, name: string): Promise<void> {
  await admin.query(`drop database if exists "${name}"`);
  await admin.query(`create database "${name}" template template0`);
  const database = knex({ client: 'pg', connection: at(url, name) });
  await migrate(database, MIGRATIONS).finally(() => database.destroy());
  // A copy needs a template without connections.
  await admin.query(`alter database "${name}" with is_template true allow_connections false`);
}

/** What killed runs left, and templates that nobody has wanted for long. */
async function dropStale(admin: pg.Client, current: string): Promise<void> {
  const { rows } = await admin.query<{ name: string; template: boolean; used: string | null }>(
    `select datname as name, datistemplate as template, shobj_description(oid, 'pg_database') as used from pg_database d
     where datname ~ '^(test|template)_' and not exists (select from pg_stat_activity a where a.datname = d.datname)`,
  );
  for (const { name, template, used } of rows) {
    const since = Number(template ? used : name.split('_')[1]);
    if (name === current || now() - since < (template ? STALE_TEMPLATE_SECONDS : STALE_DATABASE_SECONDS)) continue;
    if (template) await admin.query(`alter database "${name}" with is_template false`);
    await admin.query(`drop database if exists "${name}"`).catch(() => {}); // in use since the query
  }
}

async function copyOf(admin: string, template: string): Promise<TestDatabase> {
  const name = `test_${now()}_${randomBytes(6).toString('hex')}`;
  await withClient(admin, (client) => client.query(`create database "${name}" template "${template}"`));
  return {
    url: at(admin, name),
    drop: async () =>
      void (await withClient(admin, (client) => client.query(`drop database if exists "${name}" with (force)`))),
  };
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function at(url: string, database: string): string {
  return Object.assign(new URL(url), { pathname: `/${database}` }).href;
}

function hashOf(places: string[]): string {
  const hash = createHash('sha256');
  for (const place of places) {
    if (!fs.existsSync(place)) continue;
    const files = fs.statSync(place).isDirectory()
      ? fs
          .readdirSync(place, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map((entry) => path.join(entry.parentPath, entry.name))
          .sort()
      : [place];
    for (const file of files) hash.update(path.relative(ROOT, file)).update(fs.readFileSync(file));
  }
  return hash.digest('hex').slice(0, 12);
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
