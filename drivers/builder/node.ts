// Node.js: dependencies by the lock file, the build script, and what starts it.
import type { HostFacts, ProgramName } from '../../core/host_facts';
import { BuildError } from '../builder';
import { satisfies } from './node_range';
import { parsePackage, type Package } from './package_json';
import type { DetectLanguage, LanguagePlan, Step } from './language_plan';
import type { SourceFiles } from './source_files';
import { siteOfBuild } from './static_site';

type Manager = 'npm' | 'yarn' | 'pnpm';

const lockFiles: [file: string, manager: Manager][] = [
  ['package-lock.json', 'npm'],
  ['npm-shrinkwrap.json', 'npm'],
  ['yarn.lock', 'yarn'],
  ['pnpm-lock.yaml', 'pnpm'],
];

export const detectNode: DetectLanguage = async (files, facts) => {
  const text = await files.read('package.json');
  if (text === null) return null;
  const found = parsePackage(text);
  const version = requireNode(found, facts);
  const manager = await findPackageManager(found, files);
  const install = found.hasDependencies || manager.lockFile !== null ? [await installStep(manager, files, facts)] : [];
  const build: Step[] =
    found.scripts.build === undefined
      ? []
      : [{ name: `${manager.name} run build`, command: `${manager.name} run build` }];
  if (install.length + build.length > 0) requireProgram(manager.name, manager.lockFile, facts);
  const part: LanguagePlan = {
    kind: 'node',
    summary: [`Node.js ${version}`, ...install.map(({ name }) => name), ...(build.length ? ['build script'] : [])],
    steps: [...install, ...build],
    site: [],
    processes: {},
    env: { NODE_ENV: 'production' },
    programs: install.length ? ['node_modules/.bin'] : [],
  };
  return withStart(part, found, manager.name, files);
};

/** What starts it: the start script, the main file, server.js or index.js; else it is a site that the build script makes. */
async function withStart(
  part: LanguagePlan,
  found: Package,
  manager: Manager,
  files: SourceFiles,
): Promise<LanguagePlan> {
  const file = await firstFile(files, [found.main, 'server.js', 'index.js']);
  const start = found.scripts.start === undefined ? file && `node ${file}` : startCommand(found, manager);
  if (start) return { ...part, processes: { web: start } };
  if (found.scripts.build === undefined && !(await files.has('index.html')) && !(await files.has('public/index.html')))
    return part;
  const site = siteOfBuild(
    found.scripts.build === undefined ? ['.', 'public'] : ['dist', 'build', 'out', 'public', '_site', '.'],
  );
  return { ...part, kind: 'static', summary: [...part.summary, 'static site'], ...site };
}

// npm in between costs memory and a moment, and has nothing to do where the script only calls node.
function startCommand({ scripts }: Package, manager: Manager): string {
  const plain =
    scripts.prestart === undefined &&
    scripts.poststart === undefined &&
    /^node( [\w./:=@-]+)+$/.test(scripts.start ?? '');
  return plain && scripts.start ? scripts.start : `${manager} start`;
}

async function firstFile(files: SourceFiles, names: (string | null)[]): Promise<string | null> {
  for (const name of names) {
    if (name !== null && /^[\w./@-]+$/.test(name) && !name.startsWith('-') && (await files.has(name))) return name;
  }
  return null;
}

function requireNode({ node: range }: Package, { programs }: HostFacts): string {
  if (!programs.node)
    throw new BuildError(
      'The source needs Node.js, which is not installed on this platform. Ask the operator to install it.',
    );
  const { version } = programs.node;
  if (range !== null && satisfies(version, range) === false) {
    throw new BuildError(
      `package.json asks for Node.js ${range} (engines.node), but this platform has ${version}. Widen the range, or ask an operator for another version.`,
    );
  }
  return version;
}

async function findPackageManager(
  found: Package,
  files: SourceFiles,
): Promise<{ name: Manager; lockFile: string | null }> {
  const present: [string, Manager][] = [];
  for (const lock of lockFiles) if (await files.has(lock[0])) present.push(lock);
  const named = found.manager === 'yarn' || found.manager === 'pnpm' || found.manager === 'npm' ? found.manager : null;
  const [lockFile, name] = present.find(([, manager]) => manager === named) ?? present[0] ?? [null, named ?? 'npm'];
  return {
    name: lockFile === null ? name : (named ?? name),
    lockFile: named !== null && named !== name ? null : lockFile,
  };
}

async function installStep(
  { name, lockFile }: { name: Manager; lockFile: string | null },
  files: SourceFiles,
  facts: HostFacts,
): Promise<Step> {
  requireProgram(name, lockFile, facts);
  const command = await installCommand(name, lockFile, files);
  return { name: command.split(' ').slice(0, 2).join(' '), command };
}

// Development packages are what the build script is made of; NODE_ENV=production would leave them out.
async function installCommand(manager: Manager, lockFile: string | null, files: SourceFiles): Promise<string> {
  if (manager === 'npm')
    return `npm ${lockFile === null ? 'install' : 'ci'} --include=dev --prefer-offline --no-audit --no-fund`;
  if (manager === 'pnpm')
    return `pnpm install --prod=false${lockFile === null ? ' --no-frozen-lockfile' : ' --frozen-lockfile'}`;
  const isBerry = /^__metadata:/m.test((await files.read('yarn.lock')) ?? '') || (await files.has('.yarnrc.yml'));
  if (isBerry) return lockFile === null ? 'yarn install --no-immutable' : 'yarn install --immutable';
  return `yarn install --production=false --non-interactive${lockFile === null ? '' : ' --frozen-lockfile'}`;
}

function requireProgram(name: ProgramName & Manager, lockFile: string | null, { programs }: HostFacts): void {
  if (programs[name]) return;
  const why = lockFile === null ? 'package.json' : lockFile;
  throw new BuildError(
    `The source needs ${name} (${why}), which is not on this platform. ${name === 'npm' ? 'An operator can install it.' : 'Use npm with a package-lock.json, or ask an operator to install it.'}`,
  );
}
