// What a person edits of an environment, and how it differs from what is stored.
export interface Variable {
  key: string;
  value: string;
  value_hash: string;
  available_at: 'build' | 'runtime' | 'both';
  managed_by: string | null;
}

export interface Draft {
  key: string;
  value: string;
  available_at: Variable['available_at'];
  /** It has a name that stays. */
  isStored: boolean;
  /** An attachment of a database keeps it. */
  managed: boolean;
  managed_by?: string | null;
}

export interface Change {
  key: string;
  /** null: it is new. */
  before: Variable | null;
  /** null: it is removed. */
  after: Draft | null;
}

/** A variable that somebody else has changed since it was read. */
export interface Conflict {
  key: string;
  /** null: removed. */
  theirs: string | null;
  mine: string | null;
}

export function draftOf({ key, value, available_at, managed_by }: Variable): Draft {
  return { key, value, available_at, isStored: true, managed: managed_by !== null, managed_by };
}

export function changesOf(stored: readonly Variable[], drafts: readonly Draft[]): Change[] {
  const wanted = new Map(drafts.filter(({ key }) => key).map((draft) => [draft.key, draft]));
  const present = new Map(stored.map((variable) => [variable.key, variable]));
  const kept = [...wanted.values()].flatMap((after): Change[] => {
    const before = present.get(after.key) ?? null;
    const isSame = before?.value === after.value && before.available_at === after.available_at;
    return isSame ? [] : [{ key: after.key, before, after }];
  });
  const removed = stored
    .filter(({ key }) => !wanted.has(key))
    .map((before) => ({ key: before.key, before, after: null }));
  return [...kept, ...removed].sort((a, b) => (a.key < b.key ? -1 : 1));
}

/** Changes of mine to variables that are no longer what I have read. */
export function conflictsOf(
  read: readonly Variable[],
  now: readonly Variable[],
  changes: readonly Change[],
): Conflict[] {
  const [before, after] = [new Map(read.map(hashed)), new Map(now.map(hashed))];
  return changes
    .filter(({ key }) => before.get(key) !== after.get(key))
    .map(({ key, after: mine }) => ({
      key,
      mine: mine?.value ?? null,
      theirs: now.find((variable) => variable.key === key)?.value ?? null,
    }))
    .filter(({ mine, theirs }) => mine !== theirs);
}

const hashed = ({ key, value_hash, available_at }: Variable): [string, string] => [
  key,
  `${value_hash} ${available_at}`,
];

/** Adds the lines of a `.env` file; names that are there get the new value. */
export function mergeDotenv(drafts: readonly Draft[], text: string): Draft[] {
  const merged = new Map(drafts.map((draft) => [draft.key, draft]));
  for (const line of text.split(/\r?\n/)) {
    const [, key, given = ''] = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (!key || merged.get(key)?.managed) continue;
    const value = unquote(given);
    const before = merged.get(key);
    merged.set(
      key,
      before ? { ...before, value } : { key, value, available_at: 'both', isStored: false, managed: false },
    );
  }
  return [...merged.values()];
}

function unquote(text: string): string {
  if (/^'.*'$/.test(text)) return text.slice(1, -1);
  if (/^".*"$/.test(text)) return text.slice(1, -1).replace(/\\n/g, '\n').replace(/\\(.)/g, '$1');
  return text.replace(/\s+#.*$/, '');
}
