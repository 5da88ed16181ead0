// The published matrix says what the access tests hold the service to.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Actor } from '../support/contract/actors';
import { refusal } from '../support/contract/admission';
import { publishedOperation } from '../support/contract/table';
import { operations } from '../support/world';

const PROJECT = 'prj_01h455vb4pex5vsknk084sn02q';
const rows = new Map(
  readFileSync(path.resolve(__dirname, '../../docs/contract/authorisation.md'), 'utf8')
    .split('\n')
    .filter((line) => /^\| [a-z]/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .map(
      ([, name, , scope, , destroys, role, personal, project]) =>
        [name as string, { scope, destroys, role, personal, project }] as const,
    ),
);

const SCOPES = ['read', 'write', 'deploy', 'env:read', 'env:write', 'logs:read'];
const person = (role: Actor['role'], scopes = SCOPES): Actor =>
  ({ name: 'a person', token: 'x', header: PROJECT, kind: 'personal', role, scopes, member: [PROJECT] }) as Actor;
const refused = (id: string, actor: Actor): string | null => refusal(publishedOperation(id), actor, PROJECT);

test('it has every operation', () => {
  expect(operations.filter(({ id }) => !rows.has(id)).map(({ id }) => id)).toEqual([]);
});

test.each(operations.map(({ id }) => id))('%s', (id) => {
  const row = rows.get(id) as NonNullable<ReturnType<typeof rows.get>>;
  const least = (['viewer', 'developer', 'owner'] as const).find((role) => refused(id, person(role)) === null);
  expect(row.role === 'none' ? 'viewer' : row.role).toBe(least);
  const needed = row.scope === 'any' || row.scope === 'no key' ? [] : (row.scope as string).split(' + ');
  expect(refused(id, person('owner', needed))).toBeNull();
  for (const scope of needed)
    expect(
      refused(
        id,
        person(
          'owner',
          SCOPES.filter((one) => one !== scope),
        ),
      ),
    ).toBe('insufficient_scope');
  const careful = { ...person('owner', needed), mayDestroy: false } as Actor;
  expect(refused(id, careful) === 'destroy_not_allowed').toBe(row.destroys === 'yes');
  const key = {
    ...person(undefined),
    kind: 'project',
    scopes: undefined,
    role: undefined,
    projects: [PROJECT],
  } as Actor;
  expect(refused(id, key) === null || refused(id, key) === 'project_not_allowed').toBe(row.project === 'yes');
});
