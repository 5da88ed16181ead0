// Writes test/golden/ from the sources and a fresh database. `--check` writes nothing and fails on drift.
//   npm run golden [-- --check]
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openControlDatabase, type ControlDatabase } from '../../db/control_database';
import { migrate } from '../../db/migrate';
import { named } from '../../db/statement';
import { buildCore } from '../../resolvers';
import { openEmbedded } from '../../server/platform/embedded';
import { goldenFiles } from './golden_files';

const ROOT = path.resolve(__dirname, '../../..');
const FOLDER = path.join(ROOT, 'test/golden');

void main();

async function main(): Promise<void> {
  const files = await withDatabase((database) =>
    goldenFiles(buildCore(), (text) => database.query<object>(named(text), [])),
  );
  const drifted = Object.entries(files).filter(([name, text]) => present(name) !== text);
  if (!process.argv.includes('--check')) {
    for (const [name, text] of drifted) writeFileSync(path.join(FOLDER, name), text);
    for (const [name] of drifted) console.log(`wrote test/golden/${name}`);
    return;
  }
  for (const [name, text] of drifted)
    console.error(
      `golden: test/golden/${name} is not what the sources give, from line ${firstDifference(present(name), text)} on`,
    );
  if (drifted.length) console.error('Run `npm run golden`, read the differences and commit them.');
  process.exitCode = drifted.length ? 1 : 0;
}

/** On a temporary server, which is removed afterwards. */
async function withDatabase<T>(work: (database: ControlDatabase) => Promise<T>): Promise<T> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'platform-golden-'));
  chmodSync(dataDir, 0o711); // as root the server runs as another user
  try {
    const engine = await openEmbedded({ dataDir, flags: ['-c', 'fsync=off'] });
    return await migrated(engine.url, work).finally(() => engine.close());
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function migrated<T>(url: string, work: (database: ControlDatabase) => Promise<T>): Promise<T> {
  const database = openControlDatabase(url, { poolSize: 2 });
  try {
    await migrate(database.knex, path.resolve(__dirname, '../../migrations'));
    return await work(database);
  } finally {
    await database.close();
  }
}

function present(name: string): string {
  const file = path.join(FOLDER, name);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

function firstDifference(before: string, after: string): number {
  const lines = after.split('\n');
  return before.split('\n').findIndex((line, index) => line !== lines[index]) + 1 || lines.length;
}
