/** @tier heavy @quarter 4 @covers drivers/database/mariadb/import.ts drivers/database/imports */
// Imports into MariaDB: dumps of MySQL and MariaDB, and dumps that are meant to harm.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { createConnection, type Connection } from 'mysql2/promise';
import { describeEngine, openHall, type Hall } from '../support/databases/database_hall';
import { importsOf, type Imports } from '../support/databases/imports';

jest.setTimeout(180_000);

/* oxlint-disable typescript/no-explicit-any -- answers of the service */

const mysql8 = readFileSync(path.join(__dirname, 'dumps/mysql_8.sql'));

describeEngine('mariadb', () => {
  let hall: Hall;
  let id: string;
  let imports: Imports;
  let address: { port: number; password: string };

  beforeAll(async () => {
    hall = await openHall({ ALLOW_PRIVATE_ADDRESSES: '1' });
    ({ id } = await hall.create({ name: 'shop', engine: 'mariadb' }));
    imports = importsOf(hall, id);
    const { body } = await hall.call('GET', `/v2/databases/${id}/credentials`);
    address = { port: body.endpoints[0].port, password: body.password };
  });
  afterAll(() => hall?.close());

  async function query(sql: string): Promise<any[]> {
    const settings = { host: '127.0.0.1', ...address, user: 'app', database: 'app', multipleStatements: true };
    const connection: Connection = await createConnection(settings);
    try {
      const [rows] = await connection.query(sql);
      return rows as any[];
    } finally {
      await connection.end();
    }
  }

  const tables = async () => (await query('show full tables')).map((row) => Object.values(row)[0]);

  /** Drops what there is. */
  async function empty(): Promise<void> {
    for (const row of await query('show full tables')) {
      const [name, type] = Object.values(row) as string[];
      await query(`set foreign_key_checks = 0; drop ${type === 'VIEW' ? 'view' : 'table'} \`${name}\``);
    }
    for (const kind of ['procedure', 'function'])
      for (const { Name: name } of await query(`show ${kind} status where db = 'app'`))
        await query(`drop ${kind} \`${name}\``);
    for (const { Name: name } of await query('show events')) await query(`drop event \`${name}\``);
  }

  beforeEach(() => empty());

  test('a dump of MySQL 8 is there as a whole', async () => {
    const done = await imports.send(gzipSync(mysql8));
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(done.tables.length).toBeGreaterThan(0);
    for (const { name, rows_read, rows } of done.tables) expect([name, rows]).toEqual([name, rows_read]);
    expect(done.not_taken_over.map((one: any) => one.kind)).toContain('definer');
    const definers = await query(
      `select definer as d from information_schema.views where table_schema = 'app'
        union select definer from information_schema.routines where routine_schema = 'app'`,
    );
    expect([...new Set(definers.map((row) => row.d))]).toEqual(['app@%']);
    const again = await imports.send(mysql8);
    expect(again).toMatchObject({
      status: 'failed',
      status_reason: expect.stringMatching(/not empty.*Nothing was changed/),
    });
    expect((await tables()).length).toBeGreaterThan(0);
  });

  test('values of all kinds, routines and several databases in one file', async () => {
    const dump = String.raw`
CREATE DATABASE mysql;
USE mysql;
CREATE TABLE system_table (i int);
CREATE DATABASE IF NOT EXISTS shop;
USE shop;
CREATE TABLE t (id int primary key, v text, b blob) ENGINE=InnoDB COLLATE=utf8mb4_0900_ai_ci;
LOCK TABLES t WRITE;
INSERT INTO t VALUES (1,'it\'s; (x), "y"',_binary '\0\\;'),(2,'ü € 😀 utf8mb4_0900_ai_ci',NULL),(3,'',X'00FF');
INSERT INTO t (id, v) VALUES (4,'--'),(5,'/* no comment'); -- a comment; here
UNLOCK TABLES;
# another; comment
DELIMITER ;;
CREATE DEFINER=${'`'}root${'`'}@${'`'}%${'`'} PROCEDURE p() BEGIN SELECT 'a;b'; SELECT 2; END ;;
/*!50003 CREATE*/ /*!50017 DEFINER=${'`'}root${'`'}@${'`'}localhost${'`'}*/
/*!50003 TRIGGER trg BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.v = CONCAT(NEW.v, ';'); END */;;
DELIMITER ;
GRANT ALL ON *.* TO 'evil'@'%';
CREATE USER evil;
SET GLOBAL max_connections = 1;
USE other;
CREATE TABLE elsewhere (i int);
`;
    const done = await imports.send(dump);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(done.tables).toEqual([{ name: 't', rows_read: 5, rows: 5 }]);
    expect(await tables()).toEqual(['t']);
    expect(await query('select id, v, hex(b) as b from t order by id')).toEqual([
      { id: 1, v: `it's; (x), "y"`, b: '005C3B' },
      { id: 2, v: 'ü € 😀 utf8mb4_0900_ai_ci', b: null },
      { id: 3, v: '', b: '00FF' },
      { id: 4, v: '--', b: null },
      { id: 5, v: '/* no comment', b: null },
    ]);
    expect(done.not_taken_over.map((one: any) => `${one.kind} ${one.name}`).sort()).toEqual(
      expect.arrayContaining([
        'database other',
        'definer root@%',
        'definer root@localhost',
        'server_setting SET GLOBAL max_connections',
      ]),
    );
  });

  test('names of the database of the dump mean the database here', async () => {
    const dump = String.raw`
-- MySQL dump 10.13  Distrib 8.0.36, for Linux (x86_64)
--
-- Host: localhost    Database: shop
-----------------------------------------------------------
CREATE TABLE ${'`'}shop${'`'}.${'`'}items${'`'} (id int primary key, shop int, note varchar(80));
CREATE TABLE shop.notes (id int primary key auto_increment, note text,
  item int, FOREIGN KEY (item) REFERENCES shop . items (id));
INSERT INTO ${'`'}shop${'`'}.items VALUES (1, 2, 'see shop.items, ${'`'}shop${'`'}.notes'), (2, 3, '/* shop.items */');
/*!50003 CREATE*/ /*!50003 TRIGGER shop.remember BEFORE UPDATE ON shop.items FOR EACH ROW
  -- of shop.items
  INSERT INTO ${'`'}shop${'`'}.notes (note) VALUES (CONCAT('shop.items ', OLD.note)) */;
/*!50001 CREATE ALGORITHM=UNDEFINED DEFINER=root@localhost SQL SECURITY INVOKER VIEW SHOP.cheap AS
  SELECT shop.items.id, shop, 'shop.items' AS label FROM shop.items WHERE shop.items.shop < 3 */;
CREATE VIEW aliased AS SELECT shop.id FROM items shop;

CREATE VIEW abroad AS SELECT * FROM other.t;
DELIMITER ;;
CREATE PROCEDURE shop.count_all() BEGIN SELECT COUNT(*) AS c FROM shop.items; END ;;
CREATE FUNCTION f() RETURNS int READS SQL DATA RETURN (SELECT MAX(id) FROM shop.items) ;;
DELIMITER ;
UPDATE shop.items SET note = 'changed' WHERE id = 2;
`;
    const done = await imports.send(dump);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(await query('select id, label from cheap')).toEqual([{ id: 1, label: 'shop.items' }]);
    expect(await query('select id from aliased order by id')).toEqual([{ id: 1 }, { id: 2 }]);
    expect(await query('select note from items where id = 1')).toEqual([{ note: 'see shop.items, `shop`.notes' }]);
    expect(await query('select note from notes')).toEqual([{ note: 'shop.items /* shop.items */' }]);
    expect((await query('call count_all()'))[0]).toEqual([{ c: 2 }]);
    expect(await query('select f() as f')).toEqual([{ f: 2 }]);
    const missing = done.not_taken_over.filter(({ kind }: any) => kind === 'view').map(({ name }: any) => name);
    expect(missing).toContain('abroad');
    expect(await tables()).toEqual(expect.arrayContaining(['items', 'notes', 'cheap', 'aliased']));
  });

  test('a failed import leaves an empty database, and says the line', async () => {
    for (const [file, reason] of [
      ['create table a (i int);\n\nnot sql;\n', /^Line 3, at `not sql`: .*syntax.* Nothing was imported\.$/],
      ["create table a (i int);\ninsert into a values ('secret');", /^Line 2, at `insert into a values`/],
      ["create table a (i int);\nselect 'open", /incomplete/],
      [
        'create table a (i int);\nload data local infile "/etc/passwd" into table a;',
        /^Line 2: LOAD DATA reads a file/,
      ],
      ['create table a (i text);\nsource /etc/passwd;', /^Line 2: It is a command of a client/],
      ['create table a (i text);\nsystem touch /tmp/x;', /^Line 2: It is a command of a client/],
      ['create table a (i text);\n\\! touch /tmp/x\n;', /^Line 2: It is a command of a client/],
      ['create table a (i text);\nselect 1 into outfile "/tmp/x";', /^Line 2, at/],
      [
        'create table a (i text);\n/*!50000 load data local infile "/etc/passwd" into table a */;',
        /^Line 2: LOAD DATA/,
      ],
      ['create table a (i text);\n/* x */ load/* y */ data local infile "/etc/passwd" into table a;', /^Line 2/],
      [Buffer.from('PGDMP'), /archive of PostgreSQL/],
      ['REDIS0011', /snapshot of Redis/],
    ] as [string | Uint8Array, RegExp][]) {
      const failed = await imports.send(file);
      expect([failed.status, failed.status_reason]).toEqual(['failed', expect.stringMatching(reason)]);
      expect(failed.status_reason).not.toMatch(/secret/);
      expect(await tables()).toEqual([]);
    }
  });

  test('a canceled import leaves an empty database', async () => {
    const slow = await imports.begin();
    await imports.put(slow.upload_url, 'create table a (i int);\nselect sleep(60);\n');
    for (let one = slow; one.status !== 'running'; one = await imports.get(slow.id));
    expect((await hall.call('POST', `${imports.place}/${slow.id}/cancel`)).status).toBe(202);
    expect(await imports.ended(slow.id)).toMatchObject({ status: 'canceled' });
    expect(await tables()).toEqual([]);
  });

  test('a database elsewhere is copied', async () => {
    await query(
      "create table far (i int primary key, t text); insert into far select seq, repeat('ü', 20) from seq_1_to_2000",
    );
    await query('create view v as select count(*) as c from far');
    const { id: other } = await hall.create({ name: 'other', engine: 'mariadb' });
    const into = importsOf(hall, other);
    const url = `mysql://app:${address.password}@127.0.0.1:${address.port}/app`;
    const begun = await hall.call('POST', into.place, { body: { source: { url }, exclude: [] } });
    expect(begun.body.source_address).toBe(`mysql://127.0.0.1:${address.port}/app`);
    const done = await into.ended(begun.body.id);
    expect([done.status, done.status_reason]).toEqual(['completed', null]);
    expect(done.tables).toEqual([{ name: 'far', rows_read: 2000, rows: 2000 }]);
  });
});
