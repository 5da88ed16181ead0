// The start command of a Node.js source, and what is missing where there is none.
import {
  canServeBuild,
  developmentServer,
  developmentServerNote,
  productionNote,
  productionScript,
} from '../development_server';
import {
  findServerFile,
  findUsualFile,
  opensPort,
  isRunnableTypeScript,
  isServedByBun,
  isTypeScript,
} from '../server_file';
import type { SourceFiles } from '../source_files';
import { missingStart } from './missing_start';
import { frameworkServer, runsServer } from './node_frameworks';
import type { Package } from './package_json';
import { runCommand, type ManagerName, type PackageManager } from './package_manager';
import type { Workspace } from './workspace';
import { memberDirectories } from './workspace_build';

interface Start {
  /** null: no start command was found. */
  start: string | null;
  note: string | null;
  /** What is missing where nothing starts; a build script may make a site all the same. */
  missing: string | null;
  /** The build script makes no site: `missing` counts in spite of it. */
  isNoSite?: boolean;
  /** A file of TypeScript that Node.js itself runs. */
  typescript?: string;
}

interface Entry {
  file: string;
  /** It opens a port, or Bun does for it. */
  isServer: boolean;
  /** The package manager's runtime runs it as it is. */
  isRunnable: boolean;
}

/** Directories of sources beside the root directory, where no build script compiles them. */
const SOURCE_DIRECTORIES = ['src', 'server', 'app'];
/** Scripts that run the build of the members, and leave nothing at the top. */
const ofMembers =
  /^(?:npx )?(?:turbo|nx|lerna|wireit|moon)\b|\s(?:-r|--recursive|-ws|--workspaces)\b|^yarn workspaces\b/;
/** Scripts that only compile. */
const compiles = /^(?:npx )?(?:tsc|tsup|tsdown|swc|unbuild|ncc|tsc-alias|rimraf|rm)\b/;

/** A development server is replaced by the build output. */
export async function findStart(
  found: Package,
  workspace: Workspace,
  manager: PackageManager,
  files: SourceFiles,
): Promise<Start> {
  const server = developmentServer(found);
  const production = productionScript(found);
  if (production !== null)
    return {
      start: scriptCommand(found, production, manager),
      note: productionNote(server ?? 'nest start', production),
      missing: null,
    };
  if (server === null) return ofSource(found, workspace, manager, files);
  const built = await builtServer(found, manager, files);
  if (built === null && !canServeBuild(found))
    return { start: scriptCommand(found, 'start', manager), note: developmentServerNote(server, false), missing: null };
  return { start: built, note: developmentServerNote(server, true), missing: null };
}

/** Start command: the start script, the main file, server.js, index.js or another file that is a server. */
async function ofSource(
  found: Package,
  workspace: Workspace,
  manager: PackageManager,
  files: SourceFiles,
): Promise<Start> {
  const nothing = { start: null, note: null, missing: null };
  if (found.scripts.start !== undefined) return { ...nothing, start: scriptCommand(found, 'start', manager) };
  const file = await firstFile(files, [found.main, 'server.js', 'index.js']);
  if (file !== null) return starts({ file, isServer: true, isRunnable: true }, manager);
  const built = await builtServer(found, manager, files);
  if (built !== null) return { ...nothing, start: built };
  const members = await memberDirectories(found, workspace);
  const build = found.scripts.build ?? '';
  if (members.length > 0 && (build === '' || ofMembers.test(build)))
    return { ...nothing, missing: missingStart(found, { members }), isNoSite: true };
  const entry = await findEntry(files, manager);
  if (build === '' && entry?.isServer && entry.isRunnable) return starts(entry, manager);
  const isNoSite = build !== '' && compiles.test(build) && (runsServer(found) || entry?.isServer === true);
  return { ...nothing, missing: missingStart(found, { members, entry, manager: manager.name }), isNoSite };
}

function starts({ file }: Pick<Entry, 'file'> & Entry, manager: PackageManager): Start {
  const typescript = isTypeScript(file) && manager.name !== 'bun' ? { typescript: file } : {};
  return { start: nodeCommand(file, manager), note: null, missing: null, ...typescript };
}

/** A file with a usual name: one that opens a port, else any. */
async function findEntry(files: SourceFiles, { name }: PackageManager): Promise<Entry | null> {
  const places = ['.', ...SOURCE_DIRECTORIES];
  const file = (await findServerFile(files, places)) ?? (await findUsualFile(files, places));
  if (file === null) return null;
  const isBun = name === 'bun';
  return {
    file,
    isServer: (await opensPort(files, file)) || (isBun && (await isServedByBun(files, file))),
    isRunnable: isBun || !isTypeScript(file) || (await isRunnableTypeScript(files, file)),
  };
}

async function builtServer(found: Package, manager: PackageManager, files: SourceFiles): Promise<string | null> {
  const built = await frameworkServer(found, files);
  if (built !== null) return manager.isPnp && !built.startsWith('node ') ? `yarn ${built}` : built;
  const server = await findServerFile(files, ['.'], (file) => !isTypeScript(file));
  return server && nodeCommand(server, manager);
}

function nodeCommand(file: string, { name, isPnp }: PackageManager): string {
  if (isPnp) return `yarn node ${file}`;
  return `${name === 'bun' ? 'bun' : 'node'} ${file}`;
}

// npm in between would cost memory and start time, and is unnecessary for a script that only calls node.
function scriptCommand(
  { scripts }: Package,
  script: string,
  { name, isPnp }: { name: ManagerName; isPnp: boolean },
): string {
  const line = scripts[script] ?? '';
  const plain =
    !isPnp &&
    scripts[`pre${script}`] === undefined &&
    scripts[`post${script}`] === undefined &&
    /^node( [\w./:=@-]+)+$/.test(line);
  return plain ? line : runCommand(name, script);
}

async function firstFile(files: SourceFiles, names: (string | null)[]): Promise<string | null> {
  for (const name of names) {
    if (name !== null && /^[\w./@-]+$/.test(name) && !name.startsWith('-') && (await files.has(name))) return name;
  }
  return null;
}
