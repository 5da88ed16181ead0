// Node.js: dependencies by the lock file, the build script, and what starts it.
import { majorOf } from '../../core/semver';
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
import type { BuildHost, DetectLanguage, LanguagePlan, Step } from './language_plan';
import { frameworkServer } from './node_frameworks';
import { findServerFile } from './server_file';
import type { SourceFiles } from './source_files';

export const detectNode: DetectLanguage = async (files, host) => {
  const text = await files.read('package.json');
  return text === null ? null : planNode(parsePackage(text), files, host);
};

/** A server without a package.json, and so without packages. */
export const detectNodeFile: DetectLanguage = async (files, host) => {
  if ((await files.has('package.json')) || (await findServerFile(files)) === null) return null;
  return planNode(parsePackage('{}'), files, host);
};

async function planNode(found: Package, files: SourceFiles, host: BuildHost): Promise<LanguagePlan> {
  const manager = await findPackageManager(found, files);
  const needs = await findPackageNeeds(files, manager, '');
  const chosen = await chooseNodeTools(await statedNode([{ found, files }]), needs, manager, host);
  // Yarn 2 and later run nothing, not even a script, in a project that was not installed.
  const isYarnBerry = manager.name === 'yarn' && majorOf(chosen.manager) >= 2;
  const installs = found.hasDependencies || manager.lockFile !== null || isYarnBerry;
  const install: Step[] = installs ? [stepOf(installCommand(manager, chosen.manager), 2)] : [];
  const build: Step[] = found.scripts.build === undefined ? [] : [stepOf(runCommand(manager.name, 'build'), 3)];
  const start = await webCommand(found, manager, files);
  return {
    kind: 'node',
    summary: [
      `Node.js ${chosen.node}`,
      ...(manager.name === 'npm' ? [] : [`${manager.name} ${chosen.manager}`]),
      ...install.map(({ name }) => name),
      ...(build.length ? ['build script'] : []),
    ],
    reasons: [chosen.reason],
    notes: chosen.note === null ? [] : [chosen.note],
    tools: chosen.tools,
    steps: [...install, ...build],
    site: [],
    hasBuildScript: build.length > 0,
    prune:
      installs && found.hasDevelopment ? pruneCommand(manager, chosen.manager, await isWorkspace(found, files)) : null,
    processes: start === null ? {} : { web: start },
    env: { NODE_ENV: 'production' },
    programs: installs && !manager.isPnp ? ['node_modules/.bin'] : [],
  };
}

function stepOf(command: string, words: number): Step {
  return { name: command.split(' ').slice(0, words).join(' '), command };
}

/** What starts it: the start script, the main file, server.js, index.js or another file that is a server. */
async function webCommand(found: Package, manager: PackageManager, files: SourceFiles): Promise<string | null> {
  if (found.scripts.start !== undefined) return startCommand(found, manager);
  const file = await firstFile(files, [found.main, 'server.js', 'index.js']);
  if (file !== null) return nodeCommand(file, manager);
  const built = await frameworkServer(found, files);
  if (built !== null) return manager.isPnp && !built.startsWith('node ') ? `yarn ${built}` : built;
  const server = await findServerFile(files);
  return server && nodeCommand(server, manager);
}

function nodeCommand(file: string, { name, isPnp }: PackageManager): string {
  if (isPnp) return `yarn node ${file}`;
  return `${name === 'bun' ? 'bun' : 'node'} ${file}`;
}

// npm in between costs memory and a moment, and has nothing to do where the script only calls node.
function startCommand({ scripts }: Package, { name, isPnp }: { name: ManagerName; isPnp: boolean }): string {
  const plain =
    !isPnp &&
    scripts.prestart === undefined &&
    scripts.poststart === undefined &&
    /^node( [\w./:=@-]+)+$/.test(scripts.start ?? '');
  return plain && scripts.start ? scripts.start : runCommand(name, 'start');
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
