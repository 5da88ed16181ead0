// Whose build is next where fewer can run at a time than wait, by rows alone.
import { beginDeployment, wakeStackAndQueue, type DeploymentKey } from '../../models/deployments/deployment_work';
import { deployed } from '../support/deployments/deployed';
import { startService, type TestService } from '../support/service';

const AT_ONCE = 2;
let service: TestService;

beforeAll(async () => {
  service = await startService({});
  await service.sql(`insert into accounts (id, name) values ('acc_other', 'other')`);
  await service.sql(
    `insert into projects select (jsonb_populate_record(p, '{"id": "prj_other", "account_id": "acc_other"}')).*
      from projects p where id = $1`,
    [service.project],
  );
});
afterAll(() => service.close());

/** A queued deployment of an application of its own, in a project. */
async function queued(name: string, project: string): Promise<DeploymentKey> {
  const { body } = await service.call('POST', '/v2/applications', { body: { name } });
  const { deployment } = await deployed(service, body.id);
  await service.sql('update applications set project_id = $2 where id = $1', [body.id, project]);
  const [row] = await service.sql(
    `update deployments set status = 'queued', project_id = $2, next_at = now() where id = $1 returning *`,
    [deployment, project],
  );
  return row as DeploymentKey;
}

const end = ({ id }: DeploymentKey) =>
  service.sql(`update deployments set status = 'failed', next_at = null where id = $1`, [id]);

test('an account that builds less than another comes before it, whatever the other has queued', async () => {
  const { database } = service.platform;
  const begin = (row: DeploymentKey) => beginDeployment(database, row, 'building', AT_ONCE);
  const mine: DeploymentKey[] = [];
  for (const name of ['one', 'two', 'three', 'four']) mine.push(await queued(name, service.project));
  const [a, b, c, d] = mine as [DeploymentKey, DeploymentKey, DeploymentKey, DeploymentKey];
  // Alone, it may have every place.
  expect([await begin(a), await begin(b), await begin(c)]).toEqual(['begun', 'begun', 'wait']);
  const other = await queued('five', 'prj_other');
  expect(await begin(other)).toBe('wait');
  await end(a);
  expect([await begin(c), await begin(other), await begin(c)]).toEqual(['wait', 'begun', 'wait']);
  await end(b);
  expect([await begin(c), await begin(d)]).toEqual(['begun', 'wait']);
  // One that cannot begin keeps nobody waiting.
  const broken = await queued('six', 'prj_other');
  await service.sql('update deployments set attempts = 3 where id = $1', [broken.id]);
  await end(other);
  expect(await begin(d)).toBe('begun');
});

test('of a long queue, those of every account are woken when a place is free', async () => {
  await service.sql(`update deployments set status = 'failed', next_at = null where status <> 'active'`);
  const pattern = await queued('seven', service.project);
  await service.sql(
    `insert into deployments select (jsonb_populate_record(d, jsonb_build_object('number', n + 100,
      'id', left(d.id, 26) || lpad(n::text, 4, '0')))).* from deployments d, generate_series(1, 150) n where d.id = $1`,
    [pattern.id],
  );
  const other = await queued('eight', 'prj_other');
  await service.sql(`update deployments set next_at = now() + interval '1 hour' where status = 'queued'`);
  await service.platform.database.transaction((sql) => wakeStackAndQueue(sql, pattern));
  const woken = await service.sql<{ id: string }>(
    `select id from deployments where status = 'queued' and next_at <= now()`,
  );
  expect(woken.length).toBe(100);
  expect(woken.map(({ id }) => id)).toContain(other.id);
});
