// Member patterns of workspaces: paths with `*`, `**` and `{a,b}`, in package.json or pnpm-workspace.yaml.

const PATTERNS_MAX = 200;
const PATTERN_LENGTH_MAX = 500;
const ALTERNATIVES_MAX = 50;
const BRACES = /\{([^{},]*(?:,[^{},]*)+)\}/;

/** The list `packages` of pnpm-workspace.yaml, in YAML block or flow style. */
export function pnpmPackages(text: string): string[] {
  const lines = text.split(/\r?\n/).map((line) => line.replace(/(^|\s)#.*/, '').trimEnd());
  const start = lines.findIndex((line) => /^["']?packages["']?\s*:/.test(line));
  if (start < 0) return [];
  const rest = lines.slice(start + 1);
  const after = rest.findIndex((line) => /^[^\s-]/.test(line) && !/^[\]'"]/.test(line));
  const value = [lines[start]!.replace(/^[^:]*:/, ''), ...(after < 0 ? rest : rest.slice(0, after))];
  const isFlow = value.join('').trim().startsWith('[');
  const items = isFlow
    ? splitAtCommas(value.join(' ').replace(/[[\]]/g, ''))
    : value.flatMap((line) => /^\s*-\s+(.*)$/s.exec(line)?.[1] ?? []);
  return items.map((one) => one.trim().replace(/^(["'])(.*)\1$/, '$2')).filter(Boolean);
}

/** Splits at commas outside of braces. */
function splitAtCommas(text: string): string[] {
  const items: string[] = [];
  let isOpen = false;
  for (const part of text.split(',')) {
    items.push(isOpen ? `${items.pop()},${part}` : part);
    const [opens, closes] = [part.lastIndexOf('{'), part.lastIndexOf('}')];
    if (opens !== closes) isOpen = opens > closes;
  }
  return items;
}

/**
 * Whether a directory, `apps/web`, matches the patterns. A pattern with a leading `!` excludes matches of others.
 * Patterns are untrusted: the time is at most proportional to the product of the lengths.
 */
export function isNamed(directory: string, patterns: readonly string[]): boolean {
  const path = directory.split('/');
  const names = (pattern: string): boolean =>
    alternatives(pattern).some((one) => fits(segmentsOf(one), path, '**', isNameFit));
  const known = patterns.filter(({ length }) => length <= PATTERN_LENGTH_MAX).slice(0, PATTERNS_MAX);
  const excluded = known.filter((one) => one.startsWith('!')).map((one) => one.slice(1));
  return known.some((one) => !one.startsWith('!') && names(one)) && !excluded.some(names);
}

function segmentsOf(pattern: string): string[] {
  return pattern.replace(/^\.\//, '').replace(/\/+$/, '').split('/');
}

function isNameFit(pattern: string, name: string): boolean {
  return fits([...pattern], [...name], '*', (one, other) => one === '?' || one === other);
}

/** Each element of the pattern matches one item, `star` any number; only the last star is ever backtracked. */
function fits(
  pattern: string[],
  items: string[],
  star: string,
  isFit: (part: string, item: string) => boolean,
): boolean {
  let [at, item, lastStar, tried] = [0, 0, -1, 0];
  while (item < items.length) {
    if (pattern[at] === star) {
      [lastStar, tried, at] = [at, item, at + 1];
    } else if (at < pattern.length && isFit(pattern[at]!, items[item]!)) {
      at += 1;
      item += 1;
    } else {
      if (lastStar < 0) return false;
      tried += 1;
      [at, item] = [lastStar + 1, tried];
    }
  }
  return pattern.slice(at).every((part) => part === star);
}

/** Expands `{a,b}`, up to a limit. */
function alternatives(pattern: string): string[] {
  let found = [pattern];
  for (let next = expanded(found); next !== null && next.length <= ALTERNATIVES_MAX; next = expanded(found))
    found = next;
  return found;
}

function expanded(patterns: string[]): string[] | null {
  if (!patterns.some((one) => BRACES.test(one))) return null;
  return patterns.flatMap((one) => {
    const [whole, list] = BRACES.exec(one) ?? [];
    return whole === undefined ? [one] : list!.split(',').map((word) => one.replace(whole, () => word));
  });
}
