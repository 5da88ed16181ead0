// How workspaces name their members: paths with `*`, `**` and `{a,b}`, in package.json or pnpm-workspace.yaml.

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
    ? value
        .join(' ')
        .replace(/[[\]]/g, '')
        .split(/,(?![^{]*\})/)
    : value.flatMap((line) => /^\s*-\s+(.*)$/.exec(line)?.[1] ?? []);
  return items.map((one) => one.trim().replace(/^(["'])(.*)\1$/, '$2')).filter(Boolean);
}

/** Of paths without `.` and `..`. */
export function glob(pattern: string): RegExp {
  const path = pattern.replace(/^\.\//, '').replace(/\/+$/, '');
  const source = path.replace(/\*\*\/|\*\*|\*|\?|\{[^{}]*\}|[^\w/]/g, (found) => {
    if (found === '**/') return '(?:[^/]+/)*';
    if (found === '**') return '.+';
    if (found === '*') return '[^/]+';
    if (found === '?') return '[^/]';
    if (found.startsWith('{')) return `(?:${found.slice(1, -1).split(',').map(escaped).join('|')})`;
    return escaped(found);
  });
  return new RegExp(`^${source}$`);
}

function escaped(text: string): string {
  return text.replace(/[^\w/]/g, String.raw`\$&`).replaceAll(String.raw`\*`, '[^/]*');
}
