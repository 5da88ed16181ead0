// Made-up projects and edits of them, and what holds for each: a plan is what an apply does, and the next one is empty.
import { stringify } from 'yaml';
import { pick, randomFrom } from '../runner/seeded_random';
import type { TestService } from '../service';
import { stacksOf, type Change } from './stack_calls';

type Values = Record<string, unknown>;
type Random = <One>(choices: readonly One[]) => One;

const APPLICATIONS = ['alpha', 'beta', 'gamma'];
const DATABASES = ['main', 'cache'];
const TEXTS = [
  'one',
  '',
  'yes',
  '0x10',
  '1.10',
  '~',
  'a: b',
  '# no comment',
  'line\nline',
  '$${x}',
  '$$${x}',
  'a$',
  '$A',
  ' ä ',
  '"',
  "'",
  '|',
];

function some(random: Random, names: readonly string[], make: (name: string) => unknown): Values {
  return Object.fromEntries(names.filter(() => random([true, false])).map((name) => [name, make(name)]));
}

function application(random: Random, databases: readonly string[], code: string): (name: string) => Values {
  return (name) => {
    const variables = some(random, ['A', 'B_C', '__proto__', 'SECRET'], (key) => {
      if (key === 'SECRET') return { secret: true };
      const value = random(TEXTS);
      return random([value, value, { value, available_at: random(['build', 'runtime', 'both']) }]);
    });
    const database = random([...databases, null, null]);
    if (database)
      Object.defineProperty(variables, 'DB_URL', { value: `\${database.${database}.url}`, enumerable: true });
    return {
      ...some(random, ['description'], () => random(['The shop', null, '1.10'])),
      ...some(random, ['source'], () =>
        random([
          { type: 'git', repository_url: 'https://git.example.com/team/shop.git', branch: random(['main', 'next']) },
          { type: 'image', image: random(['docker.io/library/nginx:1.29', 'docker.io/library/caddy:2'] as const) },
          { type: 'upload' },
        ] as Values[]),
      ),
      ...some(random, ['settings'], () => ({
        ...some(random, ['maintenance_mode'], () => random([true, false])),
        ...some(random, ['log_retention_days'], () => random([1, 7, 30])),
        ...some(random, ['build'], () => ({ root_directory: random(['.', 'web']) })),
      })),
      processes: some(random, ['web', 'worker', 'cron'], () => process(random)),
      variables,
      schedules: some(random, ['nightly', 'Hourly one'], () => ({
        ...{ cron: random(['@daily', '30 2 * * *']), command: random(['npm run a', 'npm run b']) },
        ...some(random, ['time_zone'], () => random(['UTC', 'Europe/Berlin'])),
        ...some(random, ['enabled'], () => random([true, false])),
      })),
      domains: random([true, false]) ? { [`${random(['one', 'TWO'])}-${name}.${code}.example.com`]: {} } : {},
    };
  };
}

function process(random: Random): Values {
  const scale = random<Values>([
    {},
    { instances: random([0, 1, 2]) },
    { autoscaling: { min_instances: 1, max_instances: random([2, 3]), metric: 'cpu', target: random([50, 70]) } },
    { autoscaling: null },
  ]);
  return { ...scale, ...some(random, ['command'], () => random(['npm start', null, 'node a.js'])) };
}

/** @param code makes names that are unique on the whole platform */
function randomStack(random: Random, code: string): Values {
  const engines: Values = {
    main: { engine: 'postgresql', ...some(random, ['storage_gb'], () => random([1, 2])) },
    cache: { engine: 'redis' },
  };
  const databases = some(random, DATABASES, (name) => ({
    ...(engines[name] as Values),
    ...some(random, ['backup_schedule'], () => ({ hour_utc: random([1, 5]) })),
  }));
  const applications = some(random, APPLICATIONS, application(random, Object.keys(databases), code));
  const names = Object.keys(applications);
  return {
    databases,
    buckets: some(random, [`one-${code}`, `two-${code}`], () => ({
      ...some(random, ['versioning'], () => random([true, false])),
      ...some(random, ['quota_gb'], () => random([5, null])),
    })),
    volumes: some(random, ['uploads', 'scratch'], (name) => ({
      size_gb: random([1, 2, 3]),
      ...(names.length && random([true, false])
        ? { application: random(names), mount_path: random(['/data', `/${name}`]) }
        : random([{}, { application: null }])),
    })),
    applications,
  };
}

/** Makes a project, edits it, and checks what holds for any. @returns whether the edit was applied, or refused */
export async function checkRandomStack(service: TestService, seed: number): Promise<'applied' | 'refused'> {
  const chance = randomFrom(seed);
  const random: Random = (choices) => pick(chance, choices);
  const { id, key } = await service.newProject();
  const stacks = stacksOf(service, id, { key, project: id });
  const code = id.slice(-6);
  const settle = async (): Promise<void> => {
    await service.sql(`update databases set status = 'available' where project_id = $1`, [id]);
    await service.sql(
      `update volumes set status = case when application_id is null then 'available' else 'in_use' end
      where project_id = $1`,
      [id],
    );
  };
  let outcome: 'applied' | 'refused' = 'refused';
  for (let edit = 0; edit < 3; edit += 1) {
    const document = stringify(randomStack(random, code));
    const prune = random([true, false]);
    const before = await stacks.export('?values=true');
    const plan = await stacks.plan(document, { prune });
    expect({ seed, document, status: plan.status, ...(plan.status !== 200 && plan.body) }).toMatchObject({
      status: 200,
    });
    expect((await stacks.export('?values=true')).body).toEqual(before.body);
    expect(plan.body.refusals.length > 0).toBe(plan.body.plan_token === null);
    if (plan.body.plan_token === null) continue;
    const applied = await stacks.apply(document, plan, { confirm: plan.body.confirm });
    expect({ seed, status: applied.status, body: applied.body }).toMatchObject({ status: 202 });
    expect(withoutIds(applied.body.changes)).toEqual(withoutIds(plan.body.changes));
    await settle();
    const again = await stacks.plan(document, { prune });
    expect({ seed, document, ...again.body }).toMatchObject({ changes: [], refusals: [] });
    const written = await stacks.plan((await stacks.export(random(['', '?values=true']))).body.document, {
      prune: true,
    });
    expect({ seed, ...written.body }).toMatchObject({ changes: [], refusals: [] });
    outcome = 'applied';
  }
  return outcome;
}

const withoutIds = (changes: readonly Change[]): object[] => changes.map((one) => ({ ...one, resource_id: null }));
