// How workspaces name their members: paths with `*`, `**` and `{a,b}`, in package.json or pnpm-workspace.yaml.

const PATTERNS_MAX = 200;
const PATTERN_LENGTH_MAX = 500;
const ALTERNATIVES_MAX = 50;
const BRACES = /\{([^{},]*(?:,[^{},]*)+)\}/;

/** The list `packages` of pnpm-workspace.yaml, in either of the ways that YAML has for lists. */
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
    : value.flatMap((line) => /^\s*-\s+(.*)$/.exec(line)?.[1] ?? []);
  return items.map((one) => one.trim().replace(/^(["'])(.*)\1$/, '$2')).filter(Boolean);
}

/** Those within braces stay. */
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
 * Whether a directory, `apps/web`, is named. Patterns that begin with `!` take away what others name. The time grows
 * with the product of the lengths at most: strangers write the patterns.
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

/** Each part of the pattern fits one item, `star` any number of them; only the last star is ever tried again. */
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

/** `{a,b}` written out, as far as there are not too many. */
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
