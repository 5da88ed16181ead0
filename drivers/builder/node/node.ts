// Node.js: dependencies according to the lock file, build script, and start command.
import { majorOf } from '../../toolchain/versions';
import { chooseNodeTools } from './node_tools';
import { statedNode } from './node_version';
import { findPackageNeeds } from './package_engines';
import { parsePackage, type Package } from './package_json';
import {
  findPackageManager,
  installCommand,
  pruneCommand,
  runCommand,
  type ManagerName,
  type PackageManager,
} from './package_manager';
import {
  angularDirectories,
  canServeBuild,
  developmentServer,
  developmentServerNote,
  productionNote,
  productionScript,
} from '../development_server';
import type { BuildHost, DetectLanguage, LanguagePlan, Step } from '../language_plan';
import { frameworkServer } from './node_frameworks';
import { findServerFile } from '../server_file';
import type { SourceFiles } from '../source_files';
import { findWorkspace, packagesAbove, type Workspace } from './workspace';
import { workspaceBuild } from './workspace_build';

export const detectNode: DetectLanguage = async (files, host) => {
  const text = await files.read('package.json');
  return text === null ? null : planNode(parsePackage(text), files, host);
};

/** A server without package.json, and thus without packages. */
export const detectNodeFile: DetectLanguage = async (files, host) => {
  if ((await files.has('package.json')) || (await findServerFile(files)) === null) return null;
  return planNode(parsePackage('{}'), files, host);
};

async function planNode(found: Package, files: SourceFiles, host: BuildHost): Promise<LanguagePlan> {
  const workspace = await findWorkspace(found, files);
  const manager = await findPackageManager(await withPackageManager(found, files, workspace), workspace.files);
  const needs = await findPackageNeeds(workspace.files, manager, workspace.member);
  const chosen = await chooseNodeTools(await statedNode(found, files, workspace), needs, manager, host);
  // Yarn 2 and later run no scripts in a project that was not installed.
  const isYarnBerry = manager.name === 'yarn' && majorOf(chosen.manager) >= 2;
  const isMember = workspace.member !== '';
  const installs = found.hasDependencies || manager.lockFile !== null || isYarnBerry || isMember;
  const alone = await outsideOfWorkspace(manager, workspace);
  const install = installs ? [installStep(`${installCommand(manager, chosen.manager)}${alone}`, workspace)] : [];
  const build = await workspaceBuild(found, workspace, manager);
  const { start, note } = await findStart(found, manager, files);
  return {
    kind: 'node',
    summary: [
      `Node.js ${chosen.node}`,
      ...(manager.name === 'npm' ? [] : [`${manager.name} ${chosen.manager}`]),
      ...install.map(({ name }) => name),
      ...(isMember ? [`in the workspace at ${workspace.up}`] : []),
      ...(build.length ? ['build script'] : []),
    ],
    reasons: [chosen.reason],
    notes: [chosen.note, note].filter((one) => one !== null),
    tools: chosen.tools,
    steps: [...install, ...build],
    site: [],
    hasBuildScript: found.scripts.build !== undefined,
    siteDirectories: await angularDirectories(files),
    // Workspace members share one package tree: development dependencies of one may be needed by another.
    prune:
      installs && found.hasDevelopment && !isMember
        ? pruneCommand(manager, chosen.manager, await isWorkspace(found, files))
        : null,
    processes: start === null ? {} : { web: start },
    env: { NODE_ENV: 'production' },
    programs: installs && !manager.isPnp ? programDirectories(workspace) : [],
  };
}

function installStep(command: string, { up }: Workspace): Step {
  const name = command.split(' ').slice(0, 2).join(' ');
  return { name, command: up === '.' ? command : `cd -P ${up} && ${command}` };
}

/** pnpm would use the lock file of a workspace above, even one that does not include the root directory. */
async function outsideOfWorkspace({ name }: PackageManager, { files, member }: Workspace): Promise<string> {
  if (name !== 'pnpm' || member !== '') return '';
  const found = await Promise.all(files.above().map((place) => place.files.has('pnpm-workspace.yaml')));
  return found.includes(true) ? ' --ignore-workspace' : '';
}

/** Programs of the member take precedence. */
function programDirectories({ up }: Workspace): string[] {
  return ['node_modules/.bin', ...(up === '.' ? [] : [`${up}/node_modules/.bin`])];
}

/**
 * In a workspace, the package manager is stated at its top. Otherwise Corepack uses the nearest statement above, which
 * is ignored for a source with the lock file of another package manager.
 */
async function withPackageManager(found: Package, files: SourceFiles, workspace: Workspace): Promise<Package> {
  const { found: top, member } = workspace;
  if (member !== '') return { ...top, packageManager: top.packageManager ?? found.packageManager };
  const above = (await packagesAbove(files)).find(({ packageManager }) => packageManager !== null);
  if (found.packageManager !== null || above === undefined) return found;
  const own = await findPackageManager(found, files);
  const fits = own.lockFile === null || own.name === above.packageManager?.name;
  return fits ? { ...found, packageManager: above.packageManager } : found;
}

interface Start {
  /** null: no start command was found. */
  start: string | null;
  note: string | null;
}

/** A development server is replaced by the build output. */
async function findStart(found: Package, manager: PackageManager, files: SourceFiles): Promise<Start> {
  const server = developmentServer(found);
  const production = productionScript(found);
  if (production !== null)
    return {
      start: scriptCommand(found, production, manager),
      note: productionNote(server ?? 'nest start', production),
    };
  if (server === null) return { start: await webCommand(found, manager, files), note: null };
  const built = await builtServer(found, manager, files);
  if (built === null && !canServeBuild(found))
    return { start: scriptCommand(found, 'start', manager), note: developmentServerNote(server, false) };
  return { start: built, note: developmentServerNote(server, true) };
}

/** Start command: the start script, the main file, server.js, index.js or another file that is a server. */
async function webCommand(found: Package, manager: PackageManager, files: SourceFiles): Promise<string | null> {
  if (found.scripts.start !== undefined) return scriptCommand(found, 'start', manager);
  const file = await firstFile(files, [found.main, 'server.js', 'index.js']);
  if (file !== null) return nodeCommand(file, manager);
  return builtServer(found, manager, files);
}

async function builtServer(found: Package, manager: PackageManager, files: SourceFiles): Promise<string | null> {
  const built = await frameworkServer(found, files);
  if (built !== null) return manager.isPnp && !built.startsWith('node ') ? `yarn ${built}` : built;
  const server = await findServerFile(files);
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

async function isWorkspace({ hasWorkspaces }: Package, files: SourceFiles): Promise<boolean> {
  return hasWorkspaces || (await files.has('pnpm-workspace.yaml'));
}
