// The authorisation matrix: the callers allowed per operation, derived from the SDL directives that guard.ts enforces.
import type { DestroyingInput } from './destroying';
import { isClosedToViewers } from './guard';
import type { OperationTable, RootField } from './operations';

interface Authorisation {
  /** Scopes that a personal key needs, all of them. Empty where any valid key will do. */
  scopes: string[];
  /** Inputs that need the scope `deploy` as well, since they are run. */
  runs: string[];
  /** Whether the key must have `may_destroy`, or the inputs for which it must. */
  destroys: true | string[];
  /** Lowest role in the project; `none` where the operation acts on no project. */
  role: 'none' | 'viewer' | 'developer' | 'owner';
  personalKey: 'yes' | 'not restricted to projects' | 'no';
  projectKey: 'yes' | 'no';
  /** Session of the dashboard. */
  session: 'yes' | 'only' | 'only without' | 'no';
}

export function authorisationOf(field: RootField): Authorisation {
  const { access, global, scope, alsoScopes, session } = field;
  return {
    scopes: session ? [] : [scope, ...alsoScopes].filter((name) => name !== 'any' && name !== 'none'),
    runs: session || [scope, ...alsoScopes].includes('deploy') ? [] : field.runs.map((path) => path.join('.')),
    destroys: session ? [] : field.destroys || field.destroyingInputs.map(destroyingText),
    role: global || scope === 'none' || session ? 'none' : roleOf(field),
    personalKey: session ? 'no' : access.unrestricted ? 'not restricted to projects' : 'yes',
    projectKey: session || access.personalKey ? 'no' : 'yes',
    session: session === 'signedOut' ? 'only without' : session ? 'only' : 'yes',
  };
}

function destroyingText({ path, value }: DestroyingInput): string {
  return value === null ? path.join('.') : `${path.join('.')}: ${value}`;
}

function roleOf(field: RootField): Authorisation['role'] {
  if (field.access.role === 'owner') return 'owner';
  return isClosedToViewers(field) ? 'developer' : 'viewer';
}

/** In a sentence, for the documentation of one operation. */
export function describeAuthorisation(field: RootField): string {
  if (field.scope === 'none') return '**Access:** no key is needed.';
  const { scopes, runs, destroys, role, personalKey, projectKey } = authorisationOf(field);
  const quoted = (names: string[]): string[] => names.map((name) => `\`${name}\``);
  const needed = scopes.length ? `scope ${quoted(scopes).join(' and ')}` : 'any valid key';
  const parts = [needed];
  if (runs.length) parts.push(`scope \`deploy\` too for ${quoted(runs).join(', ')}`);
  if (destroys === true) parts.push('a key with `may_destroy`');
  else if (destroys.length) parts.push(`a key with \`may_destroy\` for ${quoted(destroys).join(', ')}`);
  if (role !== 'none') parts.push(role === 'owner' ? 'role owner' : `role ${role} or higher`);
  if (personalKey !== 'yes') parts.push('no personal key that is restricted to projects');
  if (projectKey === 'no') parts.push('no project keys');
  return `**Access:** ${parts.join('; ')}.`;
}

/** The matrix as a page, one line per operation, dashboard functions last. */
export function authorisationPage({ fields }: OperationTable): string {
  const rows = [...fields.values()].flatMap((field) => {
    const { scopes, runs, destroys, role, personalKey, projectKey, session } = authorisationOf(field);
    const destroying = destroys === true ? 'yes' : destroys.join(', ') || '-';
    const scope = field.scope === 'none' ? 'no key' : scopes.join(' + ') || (field.session ? '-' : 'any');
    const rights = [scope, runs.join(', ') || '-', destroying, role, personalKey, projectKey, session].join(' | ');
    const names = field.operations.length ? field.operations.map(({ id }) => id) : [field.name];
    return names.map((name) => `| ${name} | ${field.kind} | ${rights} |`);
  });
  return [...HEAD, ...rows.sort(), ''].join('\n');
}

const HEAD = [
  '# Authorisation',
  '',
  'Who may call each operation, generated from `schema/` by `npm run golden`. Role is the lowest role in the project',
  'on which the operation acts. A project key acts as a developer of its project, and may also change the project',
  'itself.',
  '',
  '| Operation | Kind | Scope of a personal key | Needs `deploy` too | Needs `may_destroy` | Role | Personal key ' +
    '| Project key | Session |',
  '|---|---|---|---|---|---|---|---|---|',
];
