// Dumps of other servers, loaded by an application's user as docs/DATABASES.md says.
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { needs } from '../support/runner/programs';

const mysql8 = readFileSync(path.join(__dirname, 'dumps/mysql_8.sql'), 'utf8');
const guide = readFileSync(path.join(__dirname, '../../docs/DATABASES.md'), 'utf8');
const documented = /```sh import\n([^]*?)```/.exec(guide)?.[1] ?? '';

describeEngine('mariadb', () => {
  let hall: Hall;
  let directory: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    hall = await openHall();
    directory = mkdtempSync(path.join(tmpdir(), 'platform-import-'));
    const { text } = await hall.call('GET', '/databases/ca.pem');
    const authority = path.join(directory, 'ca.pem');
    writeFileSync(authority, text);
    env = { PATH: process.env.PATH ?? '', CA: authority };
  }, 60_000);
  afterAll(async () => {
    await hall?.close();
    rmSync(directory, { recursive: true, force: true });
  }, 60_000);

  /** A new database: the environment of its clients. */
  async function database(name: string): Promise<Record<string, string>> {
    const { id } = await hall.create({ name, engine: 'mariadb' });
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    return { ...env, PORT: String(body.endpoints[0].port), MYSQL_PWD: body.password };
  }

  function shell(command: string, of: Record<string, string>, input?: string): SpawnSyncReturns<string> {
    return spawnSync('sh', ['-c', command], { cwd: directory, env: of, input, encoding: 'utf8', timeout: 60_000 });
  }

  const client = (program: string) =>
    `${program} -h 127.0.0.1 -P "$PORT" -u app --default-character-set=utf8mb4 --ssl-ca="$CA"`;
  function rows(of: Record<string, string>, statement: string): string[][] {
    const { stdout, stderr, status } = shell(`${client('mariadb')} -BN app`, of, statement);
    expect([status, stderr]).toEqual([0, '']);
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split('\t'));
  }

  needs('mariadb').test(
    'a dump of MySQL 8 with foreign owners is loaded through the filter of the guide, and not without it',
    async () => {
      const shop = await database('shop');
      writeFileSync(path.join(directory, 'dump.sql'), `/*M!999999\\- enable the sandbox mode */ \n${mysql8}`);
      for (const [pattern, reason] of [
        [/(?!)/, /Unknown system variable 'GTID_PURGED'|Access denied/],
        [/^(SET @@|.*GTID|4e11|CREATE DATABASE|USE `).*\n/gm, /Unknown collation: 'utf8mb4_0900/],
      ] as const) {
        const refused = shell(`${client('mariadb')} app`, shop, mysql8.replace(pattern, ''));
        expect([refused.status, refused.stderr]).toEqual([1, expect.stringMatching(reason)]);
      }
      const loaded = shell(documented, shop);
      expect([loaded.status, loaded.stdout, loaded.stderr]).toEqual([0, '', '']);

      expect(rows(shop, "call add_customer('Ada'); select id, name, code, town from customers order by id")).toEqual([
        ['1', 'Zoë 😀', 'a', 'Köln'],
        ['2', 'DEFINER=`root`@`localhost` utf8mb4_0900_ai_ci\\nUSE it', 'B', 'NULL'],
        ['3', 'Ada', 'C', 'NULL'],
      ]);
      expect(rows(shop, "select json_value(settings, '$.theme'), created_at from customers where id = 1")).toEqual([
        ['dark', '2026-01-02 03:04:05.678901'],
      ]);
      // Neither accents nor case count, as in MySQL; of the binary one both do.
      expect(rows(shop, "select id from customers where name = 'zoe 😀' or code = 'A'")).toEqual([['1']]);
      expect(rows(shop, 'select count(*) from named')).toEqual([['3']]);
      const owners = `select definer from information_schema.views where table_schema = database() union all
        select definer from information_schema.routines where routine_schema = database() union all
        select definer from information_schema.triggers where trigger_schema = database()`;
      expect(rows(shop, owners)).toEqual([['app@%'], ['app@%'], ['app@%']]);
    },
    120_000,
  );

  needs('mariadb').test(
    'a dump of one database of the platform is loaded into another as it is',
    async () => {
      const [one, two] = [await database('one'), await database('two')];
      rows(
        one,
        `create table notes (id int primary key, word text); insert into notes values (1, 'kept');
         create view words as select word from notes;
         create procedure add_note() insert into notes values (2, 'added');
         create trigger loud before insert on notes for each row set new.word = upper(new.word);`,
      );
      const dump = shell(`${client('mariadb-dump')} --single-transaction --no-tablespaces --routines app`, one);
      expect([dump.status, dump.stderr]).toEqual([0, '']);
      expect(dump.stdout).toContain('DEFINER=`app`@`%`');
      const loaded = shell(`${client('mariadb')} app`, two, dump.stdout);
      expect([loaded.status, loaded.stderr]).toEqual([0, '']);
      expect(rows(two, 'call add_note(); select * from words order by word')).toEqual([['ADDED'], ['kept']]);
    },
    120_000,
  );
});
