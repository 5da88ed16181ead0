// Workspace members that must be built before a member: its dependencies. Turborepo determines them itself.
import path from 'node:path';
import { shellWord, type Step } from '../language_plan';
import { parsePackage, type Package } from './package_json';
import { runCommand, type PackageManager } from './package_manager';
import { workspacePatterns, type Workspace } from './workspace';
import { isNamed } from './workspace_patterns';

interface Member {
  directory: string;
  found: Package;
}

const DEPTH_MAX = 5;
const DIRECTORIES_MAX = 5000;
const TASK_OF_TURBO = /"(?:[^"\s]*#)?build"\s*:/;

/** Build steps in the root directory of the member, including its own build script. @throws BuildError */
export async function workspaceBuild(found: Package, workspace: Workspace, manager: PackageManager): Promise<Step[]> {
  if (workspace.member === '') return ownBuild(found, manager);
  const needed = await neededMembers(found, workspace);
  const built = needed.filter((one) => one.found.scripts.build !== undefined);
  if (built.length === 0 && found.scripts.build === undefined) return [];
  if (await usesTurbo(workspace)) return [turboStep(workspace, manager)];
  const before = built.map(({ directory }) => ({
    name: `${runCommand(manager.name, 'build')} of ${directory}`,
    command: `cd -P ${shellWord(path.posix.join(workspace.up, directory))} && ${runCommand(manager.name, 'build')}`,
  }));
  return [...before, ...ownBuild(found, manager)];
}

function ownBuild({ scripts }: Package, { name }: PackageManager): Step[] {
  const command = runCommand(name, 'build');
  return scripts.build === undefined ? [] : [{ name: command.split(' ').slice(0, 3).join(' '), command }];
}

async function usesTurbo({ found, files }: Workspace): Promise<boolean> {
  if (!found.dependencyNames.has('turbo')) return false;
  const settings = (await files.read('turbo.json')) ?? (await files.read('turbo.jsonc')) ?? '';
  return TASK_OF_TURBO.test(settings);
}

function turboStep({ up, member }: Workspace, { isPnp }: PackageManager): Step {
  const turbo = isPnp ? 'yarn turbo' : 'PATH="$PWD/node_modules/.bin:$PATH" turbo';
  const filter = shellWord(`--filter=./${member}`);
  return {
    name: 'turbo run build',
    command: `cd -P ${up} && export TURBO_TELEMETRY_DISABLED=1 && ${turbo} run build ${filter}`,
  };
}

/** In topological order; cycles are cut. */
async function neededMembers(found: Package, workspace: Workspace): Promise<Member[]> {
  const members = new Map<string, Member>();
  for (const one of await allMembers(workspace)) if (one.found.name !== null) members.set(one.found.name, one);
  const ordered = new Set<Member>();
  const visited = new Set<string>([found.name ?? '']);
  const visit = (one: Package): void => {
    for (const name of one.dependencyNames) {
      const member = members.get(name);
      if (member === undefined || visited.has(name)) continue;
      visited.add(name);
      visit(member.found);
      ordered.add(member);
    }
  };
  visit(found);
  return [...ordered];
}

/** Directories of the members; empty for a source that is not the top of a workspace. */
export async function memberDirectories(found: Package, workspace: Workspace): Promise<string[]> {
  if (workspace.member !== '') return [];
  const patterns = await workspacePatterns(found, workspace.files);
  if (patterns.length === 0) return [];
  const members = await allMembers({ files: workspace.files, patterns });
  // For messages: a name that nobody types is left out.
  return members.map(({ directory }) => directory).filter((name) => name !== '.' && /^[\w./@+-]{1,80}$/.test(name));
}

async function allMembers({ files, patterns }: Pick<Workspace, 'files' | 'patterns'>): Promise<Member[]> {
  const members: Member[] = [];
  const queue = [{ directory: '.', depth: 0 }];
  for (
    let next = queue.shift(), seen = 0;
    next !== undefined && seen < DIRECTORIES_MAX;
    next = queue.shift(), seen += 1
  ) {
    const { directory, depth } = next;
    const text = isNamed(directory, patterns) ? await files.read(path.posix.join(directory, 'package.json')) : null;
    if (text !== null) members.push({ directory, found: parsePackage(text, `${directory}/package.json`) });
    if (depth >= DEPTH_MAX) continue;
    for (const name of await files.names(directory)) {
      if (name.startsWith('.') || name === 'node_modules') continue;
      const below = path.posix.join(directory, name);
      if (await files.isDirectory(below)) queue.push({ directory: below, depth: depth + 1 });
    }
  }
  return members;
}
