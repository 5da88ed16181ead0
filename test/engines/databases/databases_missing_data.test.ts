/** @tier heavy @quarter 1 @covers drivers/database drivers/hosted_server jobs/databases/database */
// A host whose disk of databases is not mounted, or lost: nothing is begun anew in its place, no backup is made or
// expires, and everything comes back with the disk, or from the store of backups. The service is a program that is
// killed and started again.
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';
import { createClient } from '@redis/client';
import { createConnection } from 'mysql2/promise';
import pg from 'pg';
import { openControlDatabase } from '../../../db/control_database';
import { expireBackups, scheduleBackups } from '../../../models/databases/database_backup/job_queries';
import { openStoreTrial, type StoreTrial } from '../../support/databases/backup_store';
import { createTestDatabase, type TestDatabase } from '../../support/databases/database';
import { connect, hasEngine, openDatabaseWorkshop, type DatabaseWorkshop } from '../../support/databases/database_hall';
import { freePort } from '../../support/processes/free_port';
import { processesWith, signalAll } from '../../support/processes/processes';
import { endPrograms, startProgram, type Program } from '../../support/processes/program';
import { waitFor } from '../../support/wait_for';

jest.setTimeout(400_000);

const MISSING = /^The data directory of the database is missing on its host,/;

const hasTools =
  process.env.CI !== undefined ||
  (existsSync('/usr/lib/postgresql') &&
    readdirSync('/usr/lib/postgresql').some((series) => existsSync(`/usr/lib/postgresql/${series}/bin/pg_basebackup`)));
const engines = (['postgresql', 'mariadb', 'redis'] as const).filter((engine) => hasTools && hasEngine(engine));

interface Client {
  write(address: string): Promise<void>;
  read(address: string): Promise<string | null>;
}

const clients: Record<(typeof engines)[number], Client> = {
  postgresql: {
    write: (address) =>
      connect(address, async (client) => void (await client.query("create table notes as select 'kept' as word"))),
    async read(address) {
      let word: string | null = null;
      await connect(address, async (client) => {
        word = (await client.query<{ word: string }>('select word from notes')).rows[0]!.word;
      });
      return word;
    },
  },
  mariadb: {
    write: (address) =>
      inMariadb(address, async (query) => void (await query("create table notes select 'kept' word"))),
    read: (address) => inMariadb(address, async (query) => (await query('select word from notes'))[0]?.word ?? null),
  },
  redis: {
    write: (address) => inRedis(address, ['SET', 'word', 'kept']).then(() => undefined),
    read: (address) => inRedis(address, ['GET', 'word']),
  },
};

type Query = (text: string) => Promise<{ word: string }[]>;

async function inMariadb<T>(address: string, work: (query: Query) => Promise<T>): Promise<T> {
  const { hostname, port, username, password, pathname } = new URL(address);
  const connection = await createConnection({
    ...{ host: hostname, port: Number(port), user: username, password: decodeURIComponent(password) },
    ...{ database: pathname.slice(1), ssl: { rejectUnauthorized: false } },
  });
  return work(async (text) => (await connection.query(text))[0] as never).finally(() => connection.end());
}

async function inRedis(address: string, command: string[]): Promise<string | null> {
  const { hostname, port, username, password } = new URL(address);
  const client = createClient({
    ...{ username, password: decodeURIComponent(password), disableClientInfo: true, RESP: 2 },
    socket: { host: hostname, port: Number(port), tls: true, rejectUnauthorized: false, reconnectStrategy: false },
  });
  client.on('error', () => undefined);
  await client.connect();
  return client.sendCommand<string | null>(command).finally(() => client.destroy());
}

(engines.length ? describe : describe.skip)(
  `databases of ${engines.join(', ')} (the engines have to be installed)`,
  () => {
    let store: StoreTrial;
    let database: TestDatabase;
    let workshop: DatabaseWorkshop;
    let sql: pg.Client;
    let program: Program;
    let base: string;
    let settings: Record<string, string>;
    const ids = new Map<string, string>();
    const backups = new Map<string, string>();

    beforeAll(async () => {
      store = await openStoreTrial();
      database = await createTestDatabase();
      workshop = openDatabaseWorkshop();
      sql = new pg.Client({ connectionString: database.url });
      await sql.connect();
      const { bucket, prefix, url, region, accessKeyId, secretAccessKey } = store.options;
      settings = {
        ...{ DATABASE_URL: database.url, INGRESS_PORT: String(await freePort()), LOG_LEVEL: 'error' },
        ...{ PLATFORM_DATA_DIR: path.join(workshop.databaseDir, '../data'), ...workshop.settings },
        ...{ BACKUP_STORE: `s3://${bucket}/${prefix.replace(/\/$/, '')}`, BACKUP_STORE_URL: url },
        ...{ BACKUP_STORE_REGION: region, BACKUP_STORE_ACCESS_KEY: accessKeyId },
        ...{ BACKUP_STORE_SECRET_KEY: secretAccessKey, LOG_LEVEL: 'info' },
      };
      mkdirSync(settings.PLATFORM_DATA_DIR!);
      await start();
    });
    afterAll(async () => {
      for (const id of ids.values()) await call('DELETE', `/v2/databases/${id}`).catch(() => undefined);
      const left = () => processesWith(`${workshop.databaseDir}/`).length;
      await waitFor('the end of the servers', () => Promise.resolve(left() ? null : true)).catch(() => undefined);
      await endPrograms();
      killServers();
      await sql.end();
      await database.drop();
      await store.close();
      workshop.clear();
    });

    async function start(): Promise<void> {
      program = startProgram(settings);
      base = await program.ready();
    }

    function killServers(): void {
      signalAll(processesWith(`${workshop.databaseDir}/`).map(({ pid }) => pid));
    }

    // oxlint-disable-next-line typescript/no-explicit-any -- what the API answers
    async function call(method: string, place: string, body?: object): Promise<{ status: number; body: any }> {
      const first = JSON.parse(readFileSync(path.join(settings.PLATFORM_DATA_DIR!, 'first-key.json'), 'utf8')) as {
        key: string;
        project_id: string;
      };
      const answer = await fetch(base + place, {
        ...{ method, ...(body && { body: JSON.stringify(body) }) },
        headers: {
          ...{ Authorization: `Bearer ${first.key}`, 'X-Svc-Project': first.project_id },
          ...(body && { 'Content-Type': 'application/json' }),
        },
      });
      const text = await answer.text();
      return { status: answer.status, body: text ? JSON.parse(text) : null };
    }

    /** The database when it is at rest, and says this. */
    const settled = (id: string, reason: RegExp | null) =>
      waitFor(`${id} ${reason ?? 'at rest'}`, async () => {
        const { body } = await call('GET', `/v2/databases/${id}`);
        const isSo = reason ? reason.test(body.status_reason ?? '') : body.status_reason === null;
        return ['available', 'failed'].includes(body.status) && isSo ? body : null;
      });
    const addressOf = async (id: string): Promise<string> =>
      (await call('GET', `/v2/databases/${id}/credentials`)).body.endpoints[0].connection_string;
    const backupOf = async (id: string) => {
      const made = await call('POST', `/v2/databases/${id}/backups`, {});
      return waitFor('the backup', async () => {
        const { body } = await call('GET', `/v2/databases/${id}/backups`);
        const found = body.data.find((one: { id: string }) => one.id === made.body.id);
        return ['completed', 'failed'].includes(found?.status) ? found : null;
      });
    };
    /** As a host that comes up without its disk. */
    async function restartWithout(takeAway: () => void): Promise<void> {
      program.signal('SIGKILL');
      await program.ended;
      killServers();
      await waitFor('the end of the servers', () =>
        Promise.resolve(processesWith(`${workshop.databaseDir}/`).length ? null : true),
      );
      takeAway();
      await start();
    }

    test('each has something in it, and a backup in the store', async () => {
      for (const engine of engines) {
        const { status, body } = await call('POST', '/v2/databases', { name: engine, engine });
        expect([engine, status]).toEqual([engine, 201]);
        ids.set(engine, body.id);
      }
      for (const [engine, id] of ids) {
        expect(await settled(id, null)).toMatchObject({ engine, status: 'available' });
        await clients[engine as 'redis'].write(await addressOf(id));
        const backup = await backupOf(id);
        expect(backup).toMatchObject({ status: 'completed' });
        backups.set(id, backup.id);
      }
    });

    test('without the disk nothing begins anew, no backup is made and none expires; with it all is back', async () => {
      const directory = workshop.databaseDir;
      await restartWithout(() => renameSync(directory, `${directory}.away`));
      for (const id of ids.values()) {
        expect(await settled(id, MISSING)).toMatchObject({ status: 'available' });
        expect(existsSync(path.join(directory, id))).toBe(false);
        expect(await backupOf(id)).toMatchObject({ status: 'failed', status_reason: expect.stringMatching(MISSING) });
      }
      await sql.query("update database_backups set expires_at = now() - interval '1 day'");
      await sql.query("update databases set created_at = created_at - interval '3 days'");
      const control = openControlDatabase(database.url, { poolSize: 2 });
      expect([await scheduleBackups(control, 10), await expireBackups(control, 10)]).toEqual([0, 0]);
      await control.close();
      // A restart asks the server to stop and to start: that begins none either.
      const [id] = ids.values();
      expect((await call('POST', `/v2/databases/${id}/restart`)).status).toBe(202);
      await settled(id!, MISSING);
      expect(existsSync(path.join(directory, id!))).toBe(false);
      await sql.query("update database_backups set expires_at = now() + interval '1 day'");
      rmSync(directory, { recursive: true, force: true });
      renameSync(`${directory}.away`, directory);
      for (const [engine, of] of ids) {
        await settled(of, null);
        expect([engine, await clients[engine as 'redis'].read(await addressOf(of))]).toEqual([engine, 'kept']);
      }
    });

    test('from the store it comes back on a host that has nothing', async () => {
      await restartWithout(() => rmSync(workshop.databaseDir, { recursive: true, force: true }));
      await allRestored();
    });

    // As a backup of the whole installation leaves them on a machine where the ids are those of another one.
    test('it comes back where its data alone are lost, and its other files are of another user', async () => {
      const isRoot = process.getuid?.() === 0;
      await restartWithout(() => {
        for (const id of ids.values()) {
          const directory = path.join(workshop.databaseDir, id);
          rmSync(path.join(directory, 'data'), { recursive: true });
          for (const name of readdirSync(path.join(directory, 'conf')))
            if (isRoot) chownSync(path.join(directory, 'conf', name), 12_345, 12_345);
        }
      });
      await allRestored();
    });

    async function allRestored(): Promise<void> {
      for (const [engine, id] of ids) {
        await settled(id, MISSING);
        const asked = await call('POST', `/v2/databases/${id}/restore`, { backup_id: backups.get(id) });
        expect([engine, asked.status]).toEqual([engine, 202]);
        expect(await settled(id, null)).toMatchObject({ status: 'available' });
        expect([engine, await clients[engine as 'redis'].read(await addressOf(id))]).toEqual([engine, 'kept']);
      }
    }
  },
);
