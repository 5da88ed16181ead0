// Node.js: dependencies according to the lock file, build script, and start command.
import { majorOf } from '../../toolchain/versions';
import { chooseNodeTools } from './node_tools';
import { statedNode, withTypeStripping } from './node_version';
import { findPackageNeeds } from './package_engines';
import { parsePackage, type Package } from './package_json';
import { findPackageManager, installCommand, pruneCommand, type PackageManager } from './package_manager';
import { angularDirectories } from '../development_server';
import type { BuildHost, DetectLanguage, LanguagePlan, Step } from '../language_plan';
import { findStart } from './node_start';
import { findServerFile, isRunnableTypeScript, isTypeScript } from '../server_file';
import type { SourceFiles } from '../source_files';
import { findWorkspace, packagesAbove, type Workspace } from './workspace';
import { workspaceBuild } from './workspace_build';

export const detectNode: DetectLanguage = async (files, host) => {
  const text = await files.read('package.json');
  return text === null ? null : planNode(parsePackage(text), files, host);
};

/** A server without package.json, and thus without packages. */
export const detectNodeFile: DetectLanguage = async (files, host) => {
  if (await files.has('package.json')) return null;
  const file = await findServerFile(files, ['.', 'src']);
  if (file === null || (isTypeScript(file) && !(await isRunnableTypeScript(files, file)))) return null;
  return planNode(parsePackage('{}'), files, host);
};

async function planNode(found: Package, files: SourceFiles, host: BuildHost): Promise<LanguagePlan> {
  const workspace = await findWorkspace(found, files);
  const manager = await findPackageManager(await withPackageManager(found, files, workspace), workspace.files);
  const needs = await findPackageNeeds(workspace.files, manager, workspace.member);
  const { start, note, missing, isNoSite = false, typescript } = await findStart(found, workspace, manager, files);
  const stated = await statedNode(found, files, workspace);
  const chosen = await chooseNodeTools(withTypeStripping(stated, typescript), needs, manager, host);
  // Yarn 2 and later run no scripts in a project that was not installed.
  const isYarnBerry = manager.name === 'yarn' && majorOf(chosen.manager) >= 2;
  const isMember = workspace.member !== '';
  const installs = found.hasDependencies || manager.lockFile !== null || isYarnBerry || isMember;
  const alone = await outsideOfWorkspace(manager, workspace);
  const install = installs ? [installStep(`${installCommand(manager, chosen.manager)}${alone}`, workspace)] : [];
  const build = await workspaceBuild(found, workspace, manager);
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
    hasBuildScript: found.scripts.build !== undefined && !isNoSite,
    siteDirectories: await angularDirectories(files),
    // Workspace members share one package tree: development dependencies of one may be needed by another.
    prune:
      installs && found.hasDevelopment && !isMember
        ? pruneCommand(manager, chosen.manager, await isWorkspace(found, files))
        : null,
    processes: start === null ? {} : { web: start },
    missing,
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

async function isWorkspace({ hasWorkspaces }: Package, files: SourceFiles): Promise<boolean> {
  return hasWorkspaces || (await files.has('pnpm-workspace.yaml'));
}
