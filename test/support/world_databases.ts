// The databases of a world, in the states that their job would bring them to.
import { describeHost, setStatus } from './databases/databases';
import type { World } from './world';

type Make = (world: World, kind: string) => Promise<string>;

/** Collections below a database, whose tables have longer names. */
export const databaseCollections: Record<string, string> = {
  attachments: 'database_attachment',
  backups: 'database_backup',
  endpoints: 'database_endpoint',
  extensions: 'database_extension',
  imports: 'database_import',
  replicas: 'database_replica',
  users: 'database_user',
};

/** Fields of bodies that refer to them. */
export const databaseReferences: Record<string, string> = {
  backup_id: 'database_backup',
  endpoint_id: 'database_endpoint',
  replica_id: 'database_replica',
  user_id: 'database_user',
};

/** What the jobs leave of a new row. */
const SETTLED: Record<string, string> = {
  database: `update databases set status = 'available' where id = $1`,
  database_endpoint: `update database_endpoints set status = 'active' where id = $1`,
  database_replica: `update database_replicas set status = 'available' where id = $1`,
  database_backup: `update database_backups set status = 'completed' where id = $1`,
  volume_backup: `update volume_backups set status = 'completed' where id = $1`,
};

/** Brings a new row to the state in which it can be used; those of other kinds begin so. */
export async function settleRow(world: World, kind: string, id: string): Promise<void> {
  if (SETTLED[kind]) await world.service.sql(SETTLED[kind] as string, [id]);
}

/** @param create makes a row by the operation of its kind */
export function databaseMakers(create: Make): Record<string, Make> {
  const settled = async (world: World, kind: string): Promise<string> => {
    const id = await create(world, kind);
    await settleRow(world, kind, id);
    return id;
  };
  const child: Make = async (world, kind) => {
    await settleRow(world, 'database', await world.id('database'));
    return settled(world, kind);
  };
  // One backup and one import at a time, also where a test makes several at once.
  let last: Promise<unknown> = Promise.resolve();
  const backup: Make = async (world, kind) => {
    await world.service.sql(`update database_backups set status = 'completed' where status = 'pending'`);
    return child(world, kind);
  };
  return {
    async database(world, kind) {
      await describeHost(world.service);
      return settled(world, kind);
    },
    database_user: child,
    database_endpoint: child,
    database_replica: child,
    database_import(world, kind) {
      const made = last.then(async () => {
        await world.service.sql(`update database_imports set status = 'completed' where status <> 'completed'`);
        return child(world, kind);
      });
      last = made.catch(() => {});
      return made;
    },
    // One that every PostgreSQL has.
    async database_extension(world) {
      await world.id('database');
      return 'earthdistance';
    },
    database_backup(world, kind) {
      const made = last.then(() => backup(world, kind));
      last = made.catch(() => {});
      return made;
    },
    async database_attachment(world) {
      // One application has a database once. The first has two, so that there is a page to turn.
      const [id, other] = [await world.id('database'), await world.other('database')];
      if (attached.has(world)) return attach(world, id, await world.fresh('application'), 'DATABASE');
      attached.add(world);
      const application = await world.id('application');
      await attach(world, other, application, 'OTHER');
      return attach(world, id, application, 'DATABASE');
    },
  };
}

const attached = new WeakSet<World>();

async function attach(world: World, database: string, application_id: string, env_prefix: string): Promise<string> {
  const answer = await world.call('POST', `/v2/databases/${database}/attachments`, {
    body: { application_id, env_prefix },
  });
  if (answer.status !== 201) throw new Error(`${database} is not attached: ${answer.text}`);
  world.marks.add(answer.body.id);
  return answer.body.id;
}

/** Actions that need what the last one left to be over. */
export const databaseReady: Record<string, (world: World, id: string) => Promise<unknown>> = {
  startDatabase: (world, id) => setStatus(world.service, id, 'stopped'),
  restoreDatabase: (world, id) => setStatus(world.service, id, 'available'),
  finishDatabaseImport: (world, id) =>
    world.service.sql(
      `update database_imports set status = 'running', mode = 'follow', phase = 'following' where id = $1`,
      [id],
    ),
};
