// Node.js: dependencies by the lock file, the build script, and what starts it.
import { chooseNodeTools } from './node_tools';
import { parsePackage, type Package } from './package_json';
import {
  findPackageManager,
  installCommand,
  pruneCommand,
  runCommand,
  type ManagerName,
  type PackageManager,
} from './package_manager';
import type { DetectLanguage, LanguagePlan, Step } from './language_plan';
import type { SourceFiles } from './source_files';
import { siteOfBuild } from './static_site';

export const detectNode: DetectLanguage = async (files, host) => {
  const text = await files.read('package.json');
  if (text === null) return null;
  const found = parsePackage(text);
  const manager = await findPackageManager(found, files);
  const chosen = await chooseNodeTools(found, manager, files, host);
  const installs = found.hasDependencies || manager.lockFile !== null;
  const install: Step[] = installs ? [stepOf(installCommand(manager, chosen.manager), 2)] : [];
  const build: Step[] = found.scripts.build === undefined ? [] : [stepOf(runCommand(manager.name, 'build'), 3)];
  const plan: LanguagePlan = {
    kind: 'node',
    summary: [
      `Node.js ${chosen.node}`,
      ...(manager.name === 'npm' ? [] : [`${manager.name} ${chosen.manager}`]),
      ...install.map(({ name }) => name),
      ...(build.length ? ['build script'] : []),
    ],
    tools: chosen.tools,
    steps: [...install, ...build],
    site: [],
    prune:
      installs && found.hasDevelopment ? pruneCommand(manager, chosen.manager, await isWorkspace(found, files)) : null,
    processes: {},
    env: { NODE_ENV: 'production' },
    programs: installs && !manager.isPnp ? ['node_modules/.bin'] : [],
  };
  return withStart(plan, found, manager, files);
};

function stepOf(command: string, words: number): Step {
  return { name: command.split(' ').slice(0, words).join(' '), command };
}

/** What starts it: the start script, the main file, server.js or index.js; else it is a site of the build script. */
async function withStart(
  plan: LanguagePlan,
  found: Package,
  manager: PackageManager,
  files: SourceFiles,
): Promise<LanguagePlan> {
  const file = await firstFile(files, [found.main, 'server.js', 'index.js']);
  const start = found.scripts.start === undefined ? file && nodeCommand(file, manager) : startCommand(found, manager);
  if (start) return { ...plan, processes: { web: start } };
  if (found.scripts.build === undefined && !(await files.has('index.html')) && !(await files.has('public/index.html')))
    return plan;
  const site = siteOfBuild(
    found.scripts.build === undefined ? ['.', 'public'] : ['dist', 'build', 'out', 'public', '_site', '.'],
  );
  return { ...plan, kind: 'static', summary: [...plan.summary, 'static site'], ...site, prune: null };
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
