// Programs of a Cargo package, or of the members of a workspace (doc.rust-lang.org/cargo/reference/cargo-targets.html).
import path from 'node:path';
import type { TomlTable } from '../../../core/formats/toml';
import type { SourceFiles } from '../source_files';
import { asText, parseToml, stringsOf, table } from '../toml_file';

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

/** null where the root directory has no Cargo.toml. @throws BuildError for one that cannot be read */
export async function readCargoManifest(files: SourceFiles): Promise<CargoManifest | null> {
  const root = await readManifest(files, '.');
  if (root === null) return null;
  const own = table(root.package);
  const name = asText(own.name);
  const packages = [{ directory: '.', manifest: root }];
  for (const directory of name === null ? await membersOf(files, table(root.workspace)) : []) {
    const manifest = await readManifest(files, directory);
    if (manifest !== null) packages.push({ directory, manifest });
  }
  const programs = await Promise.all(packages.map((one) => programsOf(files, one.directory, one.manifest)));
  return {
    name,
    defaultRun: asText(own['default-run']),
    programs: programs.flat(),
    dependencies: new Set(packages.flatMap(({ manifest }) => Object.keys(table(manifest.dependencies)))),
  };
}

async function readManifest(files: SourceFiles, directory: string): Promise<TomlTable | null> {
  const file = path.posix.join(directory, 'Cargo.toml');
  const text = await files.read(file);
  return text === null ? null : parseToml(text, file);
}

/** Directories of the members. `*` stands for one folder, at the end, as nearly all workspaces have it. */
async function membersOf(files: SourceFiles, workspace: TomlTable): Promise<string[]> {
  const excluded = new Set(stringsOf(workspace.exclude));
  const found: string[] = [];
  for (const member of (stringsOf(workspace.members) ?? []).map((one) => path.posix.normalize(one))) {
    const parent = /^(.*?)\/?\*$/.exec(member)?.[1];
    const names = parent === undefined ? [] : await files.names(parent || '.');
    found.push(...(parent === undefined ? [member] : names.map((name) => path.posix.join(parent, name))));
    if (found.length > MEMBERS_MAX) break;
  }
  return [...new Set(found)].filter((one) => !excluded.has(one)).slice(0, MEMBERS_MAX);
}

async function programsOf(files: SourceFiles, directory: string, manifest: TomlTable): Promise<CargoProgram[]> {
  const own = table(manifest.package);
  const name = asText(own.name);
  if (name === null || !isName(name)) return [];
  const stated = (Array.isArray(manifest.bin) ? manifest.bin : []).flatMap((one) => asText(table(one).name) ?? []);
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
