// The programs that a release needs where its host is not there: those of its plan, and, in the place of programs of
// the host, the same versions from the registries of packages.
import type { HostFacts } from '../../core/catalog/host_facts';
import { DriverError } from '../../core/driver';
import type { BuildPlan } from '../builder';
import type { Tool, ToolchainDriver, ToolName } from '../toolchain';
import { environmentDirectory } from './python/python_packages';

/** They compile or install; what was built needs them only where a command calls them. */
const BUILD_TOOLS: ReadonlySet<string> = new Set(['go', 'uv', 'poetry', 'pdm']);
const NODE_KINDS: ReadonlySet<string> = new Set(['node', 'static']);

/**
 * @param commands of process types, and of the release
 * @throws DriverError invalid where the release runs a program of the host that there is nowhere else
 */
export function runTimeTools(
  { kind, tools = [], programs = [] }: BuildPlan,
  commands: readonly string[],
  facts: HostFacts,
  toolchains: Pick<ToolchainDriver, 'packageOf'>,
): Tool[] {
  const calls = (...names: string[]): boolean =>
    commands.some((command) => new RegExp(`(^|[^\\w.-])(${names.join('|')})(?![\\w-])`).test(command));
  const has = (name: ToolName): boolean => tools.some((tool) => tool.name === name);
  const ofHost = (name: 'node' | 'npm'): Tool[] => {
    const version = facts.programs[name]?.version ?? null;
    const found = version === null ? null : toolchains.packageOf(name, version);
    return version === null || found === null ? [] : [{ name, version, package: found }];
  };
  if (programs.includes(`${environmentDirectory}/bin`) && !has('python'))
    throw new DriverError(
      'invalid',
      'This version was built with the Python of the host, which an image does not have. Deploy its commit again.',
    );
  const runsNpm = calls('npm', 'npx');
  const runsNode = NODE_KINDS.has(kind) || runsNpm || calls('node', 'yarn', 'pnpm');
  return [
    ...tools.filter(({ name }) => !BUILD_TOOLS.has(name) || calls(name)),
    ...(runsNode && !has('node') ? ofHost('node') : []),
    ...(runsNpm && !has('npm') ? ofHost('npm') : []),
  ];
}
