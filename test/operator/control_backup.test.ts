// The backup of a control database elsewhere, before an upgrade: what pg_dump is given, and which backups stay.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { loadConfig, type Config } from '../../core/config';
import { backUpControlDatabase, pruneBackups } from '../../server/upgrade/control_backup';

const PATH = process.env.PATH;
const NAME = '2026-11-28T18-00-00Z-1.0.0';

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'backups-'));
});
afterEach(() => {
  process.env.PATH = PATH;
});

function configOf(databaseUrl: string): Config {
  return { ...loadConfig({ DATABASE_URL: databaseUrl }), dataDir };
}

/** A program in the place of pg_dump. */
function pgDump(script: string): void {
  const bin = path.join(dataDir, 'bin');
  mkdirSync(bin);
  writeFileSync(path.join(bin, 'pg_dump'), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  process.env.PATH = `${bin}:${PATH}`;
}

const SHOWN = 'for a; do case $a in --file=*) file=${a#--file=};; esac; done; echo "$@" >$file; env >>$file';

test.each([
  ['in front of the host', 'postgresql://ann:s%40cret@db.example.com:5433/platform?sslmode=no-verify'],
  ['among the parameters', 'postgresql://db.example.com:5433/platform?password=s%40cret&user=ann&sslmode=no-verify'],
  [
    'in both places',
    'postgresql://bob:x@db.example.com:5433/platform?user=ann&sslmode=require&password=s%40cret&pool=2',
  ],
])('a password %s is in no list of arguments', async (_, url) => {
  pgDump(SHOWN);
  expect(await backUpControlDatabase(configOf(url), NAME)).toBeNull();
  const [words = '', ...env] = readFileSync(path.join(dataDir, 'upgrades', NAME, 'control.dump'), 'utf8').split('\n');
  expect(words).toMatch(
    / --dbname=postgresql:\/\/db\.example\.com:5433\/platform\?sslmode=require&connect_timeout=10$/,
  );
  expect(env).toEqual(expect.arrayContaining(['PGUSER=ann', 'PGPASSWORD=s@cret']));
});

test('parameters that libpq would refuse are left out, and a path of a socket stays', async () => {
  pgDump(SHOWN);
  const url = 'postgresql://localhost/platform?host=/run/a%20b&uselibpqcompat=true&sslpassword=secret&options=-c%20a=b';
  expect(await backUpControlDatabase(configOf(url), NAME)).toBeNull();
  const [words] = readFileSync(path.join(dataDir, 'upgrades', NAME, 'control.dump'), 'utf8').split('\n');
  expect(words).toMatch(/\/platform\?host=%2Frun%2Fa%20b&options=-c%20a%3Db&connect_timeout=10$/);
});

test('a pg_dump that fails leaves nothing, and one that is too old or missing is said', async () => {
  const config = configOf('postgresql://db.example.com/platform');
  pgDump('echo "pg_dump: error: connection to server failed" >&2; exit 1');
  await expect(backUpControlDatabase(config, NAME)).rejects.toThrow('pg_dump failed: connection to server failed');
  expect(readdirSync(path.join(dataDir, 'upgrades'))).toEqual([]);
  writeFileSync(
    path.join(dataDir, 'bin/pg_dump'),
    '#!/bin/sh\necho "aborting because of server version mismatch" >&2\nexit 1',
  );
  expect(await backUpControlDatabase(config, NAME)).toContain('pg_dump is older than its server');
  process.env.PATH = '/nowhere';
  expect(await backUpControlDatabase(config, NAME)).toContain('pg_dump is not installed');
  expect(readdirSync(path.join(dataDir, 'upgrades'))).toEqual([]);
});

test('the last two backups stay, of them that of this upgrade, whatever the clock said before', async () => {
  const config = configOf('postgresql://db.example.com/platform');
  const names = ['2026-11-01T00-00-00Z-1.0.0', '2026-11-02T00-00-00Z-1.0.1', '2031-01-01T00-00-00Z-1.0.2'];
  const others = ['replaced-2026-11-01T00-00-00', 'notes'];
  for (const name of [...names, ...others]) mkdirSync(path.join(dataDir, 'upgrades', name), { recursive: true });
  await pruneBackups(config, path.join(dataDir, 'upgrades', names[0] as string));
  expect(readdirSync(path.join(dataDir, 'upgrades')).sort()).toEqual([names[0], names[2], ...others].sort());
  await pruneBackups(config, null);
  expect(readdirSync(path.join(dataDir, 'upgrades')).sort()).toEqual([names[0], names[2], ...others].sort());
});
