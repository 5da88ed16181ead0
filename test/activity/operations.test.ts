// Every mutation can be reverted, or is listed with the reason why not.
import { createRequire } from 'node:module';
import path from 'node:path';
import { IRREVERSIBLE } from '../../contract/irreversible';
import { firstIdAt } from '../../core/ids';
import { layerFiles } from '../../core/layer_files';
import { REVERT_OBSTACLES } from '../../core/undo';
import { allKinds } from '../../models/base/kinds';
import { obstacleOf } from '../../models/projects/activity';
import { core } from '../support/world';

const load = createRequire(__filename);
const files = layerFiles(path.resolve(__dirname, '../../resolvers'), /^(?!index)\w+\.ts$/);
const reverts = new Set(files.flatMap((file) => Object.keys((load(file) as { revert?: object }).revert ?? {})));
const mutations = [...core.table.fields.values()].filter(({ kind }) => kind === 'mutation');

test('every mutation has a revert, or a reason why it has none', () => {
  const names = mutations.map(({ name }) => name).filter((name) => name !== 'revertActivity');
  expect(names.length).toBeGreaterThan(150);
  expect(names.filter((name) => !reverts.has(name) && !IRREVERSIBLE[name])).toEqual([]);
  expect(names.filter((name) => reverts.has(name) && IRREVERSIBLE[name])).toEqual([]);
  const known = new Set(names);
  expect([...reverts, ...Object.keys(IRREVERSIBLE)].filter((name) => !known.has(name))).toEqual([]);
});

test('what destroys says what brings it back: the bin, a revert, or nothing', () => {
  const kept = new Set(allKinds().flatMap(({ bin, name }) => (bin ? [`delete${name.replace('Managed', '')}`] : [])));
  expect(kept.size).toBeGreaterThan(10);
  const byOf = (name: string): string | null => (kept.has(name) ? 'bin' : reverts.has(name) ? 'activity' : null);
  const expected = mutations.map(({ name, destroys }) => [name, destroys ? byOf(name) : null]);
  expect(mutations.map(({ name, reversibleBy }) => [name, reversibleBy])).toEqual(expected);
});

test('what changes settings has a revert: nothing but one of its inputs is a change of a secret', () => {
  const updates = mutations.filter(
    ({ name }) => /^(update|set|replace|batch|scale)/.test(name) && name !== 'setUpOwner',
  );
  const without = updates.filter(({ name }) => !reverts.has(name)).map(({ name }) => name);
  expect(without).toEqual(['setUpInstallation']);
});

test('a revert answers with the codes of what it may run', () => {
  const answered = new Set(core.table.fields.get('revertActivity')?.errors);
  const missing = [...reverts].flatMap((name) => {
    const { errors = [], scope, destroys } = core.table.fields.get(name) ?? {};
    return [
      ...errors,
      ...(scope === 'any' ? [] : ['insufficient_scope']),
      ...(destroys ? ['destroy_not_allowed'] : []),
    ];
  });
  // An update that is not taken back, or an operation that another one takes back.
  const never = new Set(['dry_run_unsupported', 'zone_file_invalid']);
  expect([...new Set(missing)].filter((code) => !answered.has(code) && !never.has(code))).toEqual([]);
});

test('no operation that is run by a revert waits after its commit', () => {
  for (const name of reverts) expect([name, core.operations.get(name)?.confirm]).toEqual([name, undefined]);
});

test('each obstacle is a value of the enum, with a sentence of its own', () => {
  const values = core.schema.getType('RevertObstacle') as unknown as { getValues(): { name: string }[] };
  expect(
    values
      .getValues()
      .map(({ name }) => name)
      .sort(),
  ).toEqual(Object.keys(REVERT_OBSTACLES).sort());
});

test('an entry is revertible for seven days, until it is reverted', () => {
  const at = (days: number): string => firstIdAt('act', new Date(Date.now() - days * 86_400_000).toISOString());
  const kept = { revert_obstacle: null, reverted_by: null };
  expect(obstacleOf({ id: at(6.9), ...kept })).toBeNull();
  expect(obstacleOf({ id: at(7.1), ...kept })).toBe('expired');
  expect(obstacleOf({ id: at(1), ...kept, reverted_by: at(0) })).toBe('reverted');
  expect(obstacleOf({ id: at(1), ...kept, revert_obstacle: 'created' })).toBe('created');
});
