// State machines: what the schema shows, what the code knows and what the specification's rows reach are the same.
import { isEnumType, isObjectType, getNullableType } from 'graphql';
import { allKinds } from '../../models/base/kinds';
import { allJobs } from '../../jobs/all_jobs';
import { core } from '../support/world';

const pascal = (name: string): string =>
  name
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
/** A kind whose operations are not built yet shows nothing. */
const machines = allKinds()
  .filter((kind) => kind.states && core.schema.getType(pascal(kind.kind)))
  .map((kind) => [kind.kind, kind] as const);

/** The statuses that an answer of the kind may show. */
function shown(kind: string): string[] {
  const type = core.schema.getType(pascal(kind));
  const status = isObjectType(type) ? getNullableType(type.getFields().status?.type) : null;
  if (!isEnumType(status)) throw new Error(`${kind} has states, but its type has no status`);
  return status.getValues().map(({ name }) => name);
}

/**
 * docs/contract/resources.md §0.5: an action meets these with resource_busy, everything else with invalid_state. What
 * is queued goes on by itself too.
 */
const TRANSITIONAL = [
  'queued',
  'provisioning',
  'updating',
  'upgrading',
  'restoring',
  'restarting',
  'starting',
  'stopping',
  'resizing',
  'promoting',
  'building',
  'deploying',
  'scaling',
];

/** Words that mean something settled elsewhere. */
const BUSY_HERE: Record<string, string[]> = {
  database_backup: ['pending', 'running'],
  volume_backup: ['pending', 'running'],
  database_import: ['pending', 'running'],
  run: ['queued', 'starting', 'running'],
};

describe.each(machines)('%s', (name, kind) => {
  const { all, initial, moves, transitional } = kind.states as NonNullable<typeof kind.states>;

  it('has the states of the schema', () => {
    expect([...all].sort()).toEqual(shown(name).sort());
  });

  it('begins in a state of its own and reaches every other', () => {
    const reached = new Set(initial);
    for (const state of reached) for (const next of moves[state] ?? []) reached.add(next);
    expect([...reached].sort()).toEqual([...all].sort());
  });

  it('calls busy what the specification calls busy', () => {
    // Where nothing follows but the end of the row, nothing settles.
    expect([...transitional].sort()).toEqual(
      all.filter((state) => (BUSY_HERE[name] ?? TRANSITIONAL).includes(state) && moves[state]?.length).sort(),
    );
    for (const state of transitional) expect(moves[state]?.length).toBeGreaterThan(0);
  });

  it('moves only between its states, never in a circle of one', () => {
    for (const [from, to] of Object.entries(moves))
      for (const state of to)
        expect([all.includes(from), all.includes(state), from === state]).toEqual([true, true, false]);
  });
});

/** Show rows of a kind that has one. */
const VIEWS = ['ProjectDatabaseBackup'];

test('a status in the schema has a machine in the code', () => {
  const withStatus = Object.values(core.schema.getTypeMap()).filter(
    (type) =>
      isObjectType(type) && isEnumType(getNullableType(type.getFields().status?.type)) && type.getFields().created_at,
  );
  const known = [...machines.map(([name]) => pascal(name)), ...VIEWS];
  expect(withStatus.map(({ name }) => name).filter((name) => !known.includes(name))).toEqual([]);
});

test('a kind that settles by itself has a job', () => {
  const jobs = new Set(allJobs().map(({ table }) => table));
  for (const [name, kind] of machines)
    if (kind.states?.transitional.some((state) => kind.states?.initial.includes(state)))
      expect([name, jobs.has(kind.table)]).toEqual([name, true]);
});
