/** @tier heavy @quarter 2 @covers jobs/databases core/steps.ts */
// Each step of a database in turn: the control plane is killed with -9 in it and at its end, and the step fails. The
// lists themselves are looped over, so a new step is tested here.
import { databaseSteps } from '../../../jobs/databases/database/steps';
import {
  connect,
  describePostgresqlWithTools,
  openDatabaseWorkshop,
  postgresqlVersions,
  type DatabaseWorkshop,
} from '../../support/databases/database_hall';
import { startPlant, type Plant } from '../../support/processes/bad_days_program';
import { processesWith, signalAll } from '../../support/processes/processes';
import { waitFor } from '../../support/wait_for';
import { openStepOrders } from '../../support/workflows/step_orders';

const NAMES = [...new Set(Object.values(databaseSteps).flat())].map(({ name }) => name);
const KILLS = NAMES.flatMap((step) => (['within', 'after'] as const).map((when) => [when, step] as const));
const ROWS = 1_000;
const WITHIN_MS = 120_000;
const BROKEN = 'The test broke it.';
const [newest, older] = postgresqlVersions().map(String);

/* oxlint-disable typescript/no-explicit-any -- answers of all kinds */
describePostgresqlWithTools(() => {
  const orders = openStepOrders();
  let place: DatabaseWorkshop;
  let plant: Plant;
  /** With a backup. */
  let origin: { id: string; name: string };
  let backup: string;
  let made = 0;

  beforeAll(async () => {
    place = openDatabaseWorkshop();
    plant = await startPlant({ ...place.settings, ...orders.settings });
    origin = await create({ name: 'origin' });
    const asked = await plant.call('POST', `/v2/databases/${origin.id}/backups`, { body: {} });
    backup = asked.body.id;
    await waitFor('the backup', async () => (await databaseOf(origin.id, `/backups/${backup}`)).status === 'completed');
  }, WITHIN_MS);
  afterAll(async () => {
    await plant?.close();
    signalAll(processesWith(`${place.databaseDir}/`).map(({ pid }) => pid));
    place.clear();
  }, WITHIN_MS);

  const databaseOf = async (id: string, rest = ''): Promise<any> =>
    (await plant.call('GET', `/v2/databases/${id}${rest}`)).body;

  const atRest = (id: string): Promise<any> =>
    waitFor(
      'the database at rest',
      async () => {
        const body = await databaseOf(id);
        return ['available', 'failed'].includes(body.status) ? body : null;
      },
      WITHIN_MS,
    );

  const ask = async (id: string, statement: string): Promise<unknown[]> => {
    const { endpoints } = await databaseOf(id, '/credentials');
    let rows: unknown[] = [];
    await connect(endpoints[0].connection_string, async (client) => void ({ rows } = await client.query(statement)));
    return rows;
  };

  /** With rows in it. */
  async function create(body: { name: string; engine_version?: string }): Promise<{ id: string; name: string }> {
    const { body: database } = await plant.call('POST', '/v2/databases', { body: { engine: 'postgresql', ...body } });
    expect((await atRest(database.id)).status).toBe('available');
    await ask(database.id, `create table notes as select generate_series(1, ${ROWS}) as id`);
    return database;
  }

  /** What leads to the step, for a database of this name. @returns the id of that database */
  const begin: Record<string, () => Promise<{ name: string; start(): Promise<string> }>> = {
    promote: async () => {
      const name = freshName();
      const { body: replica } = await plant.call('POST', `/v2/databases/${origin.id}/replicas`, { body: { name } });
      const address = `/replicas/${replica.id}`;
      await waitFor('the replica', async () => (await databaseOf(origin.id, address)).status === 'available');
      return { name, start: async () => (await post(`/v2/databases/${origin.id}${address}/promote`)).id };
    },
    copy: async () => {
      const name = freshName();
      const restore_from = { database_id: origin.id, backup_id: backup };
      return {
        name,
        start: async () => (await post('/v2/databases', { name, engine: 'postgresql', restore_from })).id,
      };
    },
    restore: async () => {
      await ask(origin.id, 'truncate notes');
      return onOrigin(() => post(`/v2/databases/${origin.id}/restore`, { backup_id: backup }));
    },
    upgrade: async () => {
      const { id, name } = await create({ name: freshName(), engine_version: older });
      return { name, start: async () => (await post(`/v2/databases/${id}/upgrade`, { engine_version: newest })).id };
    },
    stop: () => Promise.resolve(onOrigin(() => post(`/v2/databases/${origin.id}/restart`))),
    server: () => Promise.resolve(onOrigin(() => post(`/v2/databases/${origin.id}/restart`))),
    // As an earlier version left it.
    revive: () =>
      Promise.resolve(
        onOrigin(() =>
          plant.sql(
            `update databases set status = 'failed', status_reason = 'gone', deadline_at = now(), next_at = now(),
              generation = generation + 1 where id = $1`,
            [origin.id],
          ),
        ),
      ),
  };

  const freshName = (): string => `made-${(made += 1)}`;
  const onOrigin = (start: () => Promise<unknown>) => ({
    name: origin.name,
    start: async (): Promise<string> => {
      await start();
      return origin.id;
    },
  });

  async function post(address: string, body: object = {}): Promise<{ id: string }> {
    const { status, body: answer } = await plant.call('POST', address, { body });
    expect([address, status, answer.code]).toEqual([address, expect.any(Number), undefined]);
    return answer;
  }

  const canUpgrade = older !== undefined;

  test('each step has a way to it', () => expect(Object.keys(begin).sort()).toEqual([...NAMES].sort()));

  test.each(KILLS)(
    'killed %s the step %s, it goes on, and nothing is lost',
    async (when, step) => {
      if (step === 'upgrade' && !canUpgrade) return console.warn('skipped: one version of PostgreSQL alone is here');
      const { name, start } = await begin[step]!();
      orders.give(name, { workflow: 'database', step, act: `kill_${when}`, afterMs: 50 });
      const id = await start();
      await orders.met(name);
      await plant.kill();
      await plant.start();
      await requireWhole(id, step === 'upgrade' ? newest : undefined);
    },
    WITHIN_MS,
  );

  /** What the owner reads. All but `copy` have the data from before, and go on. */
  const REASONS: Record<string, string> = {
    promote: `The replica could not be promoted. ${BROKEN} The platform tries again.`,
    copy: BROKEN,
    restore: `The restore failed. ${BROKEN} The data are as before.`,
    upgrade: `The upgrade to ${newest} failed. ${BROKEN} The database still runs version ${older}.`,
    stop: `The database could not be restarted. ${BROKEN} The platform tries again.`,
    server: `The database could not be restarted. ${BROKEN} The platform tries again.`,
    revive: BROKEN,
  };

  test.each(NAMES)(
    'a failure of the step %s is told once, and its database goes on where it has data',
    async (step) => {
      if (step === 'upgrade' && !canUpgrade) return console.warn('skipped: one version of PostgreSQL alone is here');
      const { name, start } = await begin[step]!();
      orders.give(name, { workflow: 'database', step, act: 'fail' });
      const id = await start();
      await orders.met(name);
      if (step !== 'server') await waitFor('the reason', async () => (await reasonOf(id)) === REASONS[step]);
      if (step === 'copy') return expect((await databaseOf(id)).status).toBe('failed');
      await plant.sql('update databases set next_at = now() where id = $1', [id]);
      if (step !== 'restore') return requireWhole(id, undefined, step === 'upgrade' ? REASONS[step] : null);
      expect(await ask(id, 'select count(*)::int as count from notes')).toEqual([{ count: 0 }]);
      await post(`/v2/databases/${id}/restore`, { backup_id: backup });
      await requireWhole(id);
    },
    WITHIN_MS,
  );

  const reasonOf = async (id: string): Promise<string | null> => (await databaseOf(id)).status_reason;

  /** In service with all rows. */
  async function requireWhole(id: string, version?: string, reason: string | null = null): Promise<void> {
    await waitFor(
      'the database',
      async () => {
        const { status, status_reason } = await databaseOf(id);
        return status === 'available' && status_reason === reason;
      },
      WITHIN_MS,
    );
    expect(await ask(id, 'select count(*)::int as count from notes')).toEqual([{ count: ROWS }]);
    if (version) expect((await databaseOf(id)).engine_version).toBe(version);
  }
});
