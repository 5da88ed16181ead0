// Programs of a Cargo package, or of the members of a workspace (doc.rust-lang.org/cargo/reference/cargo-targets.html).
import path from 'node:path';
import { toml } from '../../../core/formats/toml';
import { BuildError } from '../../builder';
import type { SourceFiles } from '../source_files';

const MEMBERS_MAX = 200;

export interface CargoProgram {
  name: string;
  /** Of the package that it belongs to. */
  package: string;
}

export interface CargoManifest {
  /** null for a workspace without a package of its own. */
  name: string | null;
  defaultRun: string | null;
  programs: CargoProgram[];
  /** Names of the dependencies of all packages. */
  dependencies: Set<string>;
}

type Table = Record<string, unknown>;

/** null where the root directory has no Cargo.toml. @throws BuildError for one that cannot be read */
export async function readCargoManifest(files: SourceFiles): Promise<CargoManifest | null> {
  const root = await readTable(files, '.');
  if (root === null) return null;
  const own = tableOf(root.package);
  const packages = [{ directory: '.', table: root }];
  for (const directory of own === null ? await membersOf(files, tableOf(root.workspace) ?? {}) : []) {
    const table = await readTable(files, directory);
    if (table !== null) packages.push({ directory, table });
  }
  const programs = await Promise.all(packages.map(({ directory, table }) => programsOf(files, directory, table)));
  return {
    name: own === null ? null : textOf(own.name),
    defaultRun: own === null ? null : textOf(own['default-run']),
    programs: programs.flat(),
    dependencies: new Set(packages.flatMap(({ table }) => Object.keys(tableOf(table.dependencies) ?? {}))),
  };
}

async function readTable(files: SourceFiles, directory: string): Promise<Table | null> {
  const file = path.posix.join(directory, 'Cargo.toml');
  const text = await files.read(file);
  if (text === null) return null;
  try {
    return toml().parse(text);
  } catch (error) {
    const line = (error as { line?: number }).line;
    throw new BuildError(`${file} cannot be read as TOML${line === undefined ? '' : `: see line ${line}`}.`);
  }
}

/** Directories of the members. `*` stands for one folder, at the end, as nearly all workspaces have it. */
async function membersOf(files: SourceFiles, workspace: Table): Promise<string[]> {
  const excluded = new Set(listOf(workspace.exclude));
  const found: string[] = [];
  for (const member of listOf(workspace.members).map((one) => path.posix.normalize(one))) {
    const parent = /^(.*?)\/?\*$/.exec(member)?.[1];
    const names = parent === undefined ? [] : await files.names(parent || '.');
    found.push(...(parent === undefined ? [member] : names.map((name) => path.posix.join(parent, name))));
    if (found.length > MEMBERS_MAX) break;
  }
  return [...new Set(found)].filter((one) => !excluded.has(one)).slice(0, MEMBERS_MAX);
}

async function programsOf(files: SourceFiles, directory: string, table: Table): Promise<CargoProgram[]> {
  const own = tableOf(table.package);
  const name = own === null ? null : textOf(own.name);
  if (own === null || name === null || !isName(name)) return [];
  const stated = (Array.isArray(table.bin) ? table.bin : []).flatMap((one) => textOf(tableOf(one)?.name) ?? []);
  const found = own.autobins === false ? [] : await findPrograms(files, path.posix.join(directory, 'src'), name);
  return [...new Set([...stated, ...found])].filter(isName).map((one) => ({ name: one, package: name }));
}

async function findPrograms(files: SourceFiles, source: string, name: string): Promise<string[]> {
  const found = (await files.has(`${source}/main.rs`)) ? [name] : [];
  for (const entry of await files.names(`${source}/bin`)) {
    const isFolder = await files.has(`${source}/bin/${entry}/main.rs`);
    if (entry.endsWith('.rs') || isFolder) found.push(entry.replace(/\.rs$/, ''));
  }
  return found;
}

/** Names go into commands. */
function isName(name: string): boolean {
  return /^[A-Za-z0-9][\w-]{0,63}$/.test(name);
}

function tableOf(value: unknown): Table | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Table) : null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
