// package.json, as far as building and starting needs it.
import { BuildError } from '../builder';

export interface Package {
  scripts: Record<string, string>;
  main: string | null;
  /** Ranges by the name of the program. */
  engines: Partial<Record<string, string>>;
  packageManager: { name: string; version: string | null } | null;
  /** Of all kinds of dependencies. */
  dependencyNames: Set<string>;
  hasDependencies: boolean;
  hasDevelopment: boolean;
  hasWorkspaces: boolean;
}

type Fields = Record<string, unknown>;

/** @throws BuildError that says what is wrong, and where */
export function parsePackage(text: string): Package {
  const found = parseObject(text);
  const engines = readTable(found, 'engines');
  const dependencies = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'].flatMap((name) =>
    Object.keys(readTable(found, name)),
  );
  return {
    scripts: readScripts(readTable(found, 'scripts')),
    main: typeof found.main === 'string' && found.main !== '' ? found.main : null,
    engines: Object.fromEntries(
      Object.entries(engines).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    ),
    packageManager: readPackageManager(found.packageManager),
    dependencyNames: new Set(dependencies),
    hasDependencies: dependencies.length > 0 || found.workspaces !== undefined,
    hasDevelopment: Object.keys(readTable(found, 'devDependencies')).length > 0 || found.workspaces !== undefined,
    hasWorkspaces: found.workspaces !== undefined,
  };
}

/** `pnpm@9.1.0+sha512.…`, as Corepack writes it. */
function readPackageManager(value: unknown): Package['packageManager'] {
  const [, name, version] = /^([a-z]+)(?:@v?(\d[\w.-]*))?/.exec(typeof value === 'string' ? value : '') ?? [];
  return name === undefined ? null : { name, version: version ?? null };
}

function parseObject(text: string): Fields {
  try {
    const found: unknown = JSON.parse(text);
    if (isTable(found)) return found;
  } catch (error) {
    throw new BuildError(`package.json is not valid JSON${positionOf(error as Error, text)}.`);
  }
  throw new BuildError('package.json must be a JSON object.');
}

// V8 names the position in most of its complaints: `... in JSON at position 17`.
function positionOf({ message }: Error, text: string): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  if (position === undefined) return /end of JSON/.test(message) ? ': the file is incomplete' : '';
  return `: see line ${text.slice(0, Number(position)).split('\n').length}`;
}

function readTable(found: Fields, name: string): Fields {
  const value = found[name];
  if (value === undefined || value === null || (Array.isArray(value) && name === 'engines')) return {};
  if (!isTable(value)) throw new BuildError(`package.json: ${name} must be an object.`);
  return value;
}

function readScripts(scripts: Fields): Record<string, string> {
  const wrong = Object.keys(scripts).find((name) => typeof scripts[name] !== 'string');
  if (wrong !== undefined) throw new BuildError(`package.json: the script ${JSON.stringify(wrong)} must be a string.`);
  return scripts as Record<string, string>;
}

function isTable(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
