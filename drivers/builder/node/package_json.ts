// Parses the parts of package.json that builds and starts need.
import { BuildError } from '../../builder';

export interface Package {
  name: string | null;
  scripts: Record<string, string>;
  main: string | null;
  /** Version ranges by program. */
  engines: Partial<Record<string, string>>;
  packageManager: { name: string; version: string | null } | null;
  /** Of all dependency types. */
  dependencyNames: Set<string>;
  hasDependencies: boolean;
  hasDevelopment: boolean;
  hasWorkspaces: boolean;
  /** Member patterns, if it is the top of a workspace. */
  workspaces: string[];
}

type Fields = Record<string, unknown>;

/**
 * @param file its name, for messages
 * @throws BuildError with the reason and position
 */
export function parsePackage(text: string, file = 'package.json'): Package {
  const found = parseObject(text, file);
  const read = (name: string): Fields => readTable(found, name, file);
  const engines = read('engines');
  const dependencies = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'].flatMap((name) =>
    Object.keys(read(name)),
  );
  return {
    name: typeof found.name === 'string' && found.name !== '' ? found.name : null,
    scripts: readScripts(read('scripts'), file),
    main: typeof found.main === 'string' && found.main !== '' ? found.main : null,
    engines: Object.fromEntries(
      Object.entries(engines).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    ),
    packageManager: readPackageManager(found.packageManager),
    dependencyNames: new Set(dependencies),
    hasDependencies: dependencies.length > 0 || found.workspaces !== undefined,
    hasDevelopment: Object.keys(read('devDependencies')).length > 0 || found.workspaces !== undefined,
    hasWorkspaces: found.workspaces !== undefined,
    workspaces: readWorkspaces(found.workspaces),
  };
}

/** A list, or an object with the list `packages`, as in yarn classic. */
function readWorkspaces(value: unknown): string[] {
  const list: unknown = isTable(value) ? value.packages : value;
  return Array.isArray(list) ? list.filter((one): one is string => typeof one === 'string') : [];
}

/** `pnpm@9.1.0+sha512.…`, as in Corepack. */
function readPackageManager(value: unknown): Package['packageManager'] {
  const [, name, version] = /^([a-z]+)(?:@v?(\d[\w.-]*))?/.exec(typeof value === 'string' ? value : '') ?? [];
  return name === undefined ? null : { name, version: version ?? null };
}

function parseObject(text: string, file: string): Fields {
  try {
    const found: unknown = JSON.parse(text);
    if (isTable(found)) return found;
  } catch (error) {
    throw new BuildError(`${file} is not valid JSON${positionOf(error as Error, text)}.`);
  }
  throw new BuildError(`${file} must be a JSON object.`);
}

// Most messages of V8 contain the position: `... in JSON at position 17`.
function positionOf({ message }: Error, text: string): string {
  const position = /at position (\d+)/.exec(message)?.[1];
  if (position === undefined) return /end of JSON/.test(message) ? ': the file is incomplete' : '';
  return `: see line ${text.slice(0, Number(position)).split('\n').length}`;
}

function readTable(found: Fields, name: string, file: string): Fields {
  const value = found[name];
  if (value === undefined || value === null || (Array.isArray(value) && name === 'engines')) return {};
  if (!isTable(value)) throw new BuildError(`${file}: ${name} must be an object.`);
  return value;
}

function readScripts(scripts: Fields, file: string): Record<string, string> {
  const wrong = Object.keys(scripts).find((name) => typeof scripts[name] !== 'string');
  if (wrong !== undefined) throw new BuildError(`${file}: the script ${JSON.stringify(wrong)} must be a string.`);
  return scripts as Record<string, string>;
}

function isTable(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
