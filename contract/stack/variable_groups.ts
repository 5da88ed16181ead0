// Variables that applications of a file share: `variable_groups` at its top, and at each application the names of those
// that it has. They are no resources: a plan shows what they change at each application.
import type { Tree } from './yaml_tree';

export const GROUPS = 'variable_groups';

/** Of all applications together: a group may be named by each of them, and each environment reads them again. */
const SHARED_MAX = 10_000;

type Refuse = (at: Tree, path: string, detail: string) => void;
type Entries = ReadonlyMap<string, Tree>;

interface Expanding {
  groups: Entries;
  left: number;
  refuse: Refuse;
}

/** A tree without groups, whose applications have the variables of theirs: later ones win, and own ones over all. */
export function expandGroups(tree: Tree, refuse: Refuse): Tree {
  if (tree.is !== 'map') return tree;
  const { [GROUPS]: groups, applications } = Object.fromEntries(
    [GROUPS, 'applications'].map((name) => [name, tree.entries.get(name)]),
  );
  const rest = new Map([...tree.entries].filter(([name]) => name !== GROUPS));
  if (applications?.is !== 'map') return { ...tree, entries: rest };
  const known: Entries = groups?.is === 'map' ? groups.entries : new Map();
  const expanding: Expanding = { groups: known, left: SHARED_MAX, refuse };
  const expanded = [...applications.entries].map(([name, application]): [string, Tree] => [
    name,
    withVariables(expanding, application, `applications.${name}.${GROUPS}`),
  ]);
  return { ...tree, entries: rest.set('applications', { ...applications, entries: new Map(expanded) }) };
}

function withVariables(expanding: Expanding, application: Tree, path: string): Tree {
  const named = application.is === 'map' ? application.entries.get(GROUPS) : undefined;
  if (application.is !== 'map' || !named) return application;
  const entries = new Map([...application.entries].filter(([name]) => name !== GROUPS));
  const own = entries.get('variables');
  const shared = sharedVariables(expanding, named, path);
  if (own && own.is !== 'map' && !isNull(own)) return { ...application, entries };
  const variables = new Map([...shared, ...(own?.is === 'map' ? own.entries : [])]);
  entries.set('variables', { is: 'map', line: own?.line ?? named.line, entries: variables });
  return { ...application, entries };
}

function sharedVariables(expanding: Expanding, named: Tree, path: string): Map<string, Tree> {
  const { groups, refuse } = expanding;
  const found = new Map<string, Tree>();
  if (isNull(named)) return found;
  if (named.is !== 'list') {
    refuse(named, path, 'must be a list of names');
    return found;
  }
  for (const [index, item] of named.items.entries()) {
    const group = item.is === 'scalar' ? groups.get(item.source) : undefined;
    if (!group) refuse(item, `${path}.${index}`, `is none of the \`${GROUPS}\` of the file`);
    if (group?.is !== 'map') continue;
    expanding.left -= group.entries.size;
    if (expanding.left >= 0) for (const [key, value] of group.entries) found.set(key, value);
    else refuse(item, `${path}.${index}`, `is one group too many: all have more than ${SHARED_MAX} variables together`);
  }
  return found;
}

const isNull = (tree: Tree): boolean => tree.is === 'scalar' && tree.value === null;
