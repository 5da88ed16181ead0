// Which Node.js and which package manager a source gets, and where they come from: the host or the npm registry.
import { highest, isExact, majorOf, satisfies } from '../../toolchain/versions';
import { BuildError } from '../../builder';
import { DriverError, driverContext } from '../../../core/driver';
import type { PublishedVersion, Tool, ToolName } from '../../toolchain';
import type { BuildHost } from '../language_plan';
import { bestNode, isNewestLine, reasonOf, usableNodeOfHost, type StatedNode } from './node_version';
import type { PackageNeed } from './package_engines';
import type { ManagerName, PackageManager } from './package_manager';

interface NodeTools {
  /** Version of Node.js. */
  node: string;
  /** Version of the package manager. */
  manager: string;
  /** Those of them that come from the registry. */
  tools: Tool[];
  /** Why it is this Node.js: a sentence. */
  reason: string;
  /** What the owner should know of it: a sentence. */
  note: string | null;
}

interface Request {
  name: ToolName;
  range: string | null;
  /** `engines.node`, `packageManager`: where the range stands. */
  statedBy: string | null;
  /** The version of Node.js that it must run with. */
  node: string | null;
  /** Picks among the versions that fit; else it is the highest. */
  pick?: (fit: PublishedVersion[]) => PublishedVersion | null;
}

type ChosenNode = Omit<NodeTools, 'manager'>;

/** Where the host has a Node.js too, nobody waits longer for another. */
const REGISTRY_ANSWER_MS = 20_000;
const DOWNLOAD_MS = 5 * 60_000;
const TITLES: Record<ToolName, string> = {
  ...{ node: 'Node.js', npm: 'npm', yarn: 'Yarn' },
  ...{ pnpm: 'pnpm', bun: 'Bun', go: 'Go' },
  ...{ uv: 'uv', python: 'Python' },
};

/**
 * Downloads Node.js already where that of the host would do as well, to know whether it must.
 * @throws BuildError where no version fits; DriverError transient where the registry does not answer
 */
export async function chooseNodeTools(
  stated: StatedNode,
  needs: readonly PackageNeed[],
  manager: PackageManager,
  host: BuildHost,
): Promise<NodeTools> {
  const node = await chooseNode(stated, needs, manager, host);
  const other = manager.name === 'npm' ? null : await chooseManager(manager, manager.name, node.node, host);
  const npm = node.tools.find(({ name }) => name === 'npm');
  return {
    ...node,
    manager: other?.version ?? npm?.version ?? host.facts.programs.npm!.version,
    tools: [...node.tools, ...(other === null ? [] : [other])],
  };
}

/** Node.js with the npm that belongs to it. */
async function chooseNode(
  stated: StatedNode,
  needs: readonly PackageNeed[],
  manager: PackageManager,
  host: BuildHost,
): Promise<ChosenNode> {
  const ours = usableNodeOfHost(host, stated);
  if (ours === null) return nodeOfRegistry(stated, needs, manager, host);
  if (host.preferredNode === 'host')
    return nodeOfHost(ours, manager, host, `Node.js ${ours} is that of the host, as the operator prefers it.`);
  if (isNewestLine(ours, needs)) return nodeOfHost(ours, manager, host, reasonOf(ours, stated, needs));
  try {
    const found = await nodeOfRegistry(stated, needs, manager, withTime(host, REGISTRY_ANSWER_MS));
    if (majorOf(found.node) === majorOf(ours))
      return await nodeOfHost(ours, manager, host, reasonOf(ours, stated, needs));
    await host.toolchains.ensure(found.tools, withTime(host, DOWNLOAD_MS).ctx);
    return found;
  } catch (error) {
    if (host.ctx.signal.aborted || !(error instanceof DriverError || error instanceof BuildError)) throw error;
    const note = `Node.js ${ours} of the host is used, since a newer one could not be had: ${error.message}`;
    return { ...(await nodeOfHost(ours, manager, host, reasonOf(ours, stated, needs))), note };
  }
}

function withTime(host: BuildHost, ms: number): BuildHost {
  return { ...host, ctx: driverContext(ms, host.ctx.signal) };
}

async function nodeOfRegistry(
  stated: StatedNode,
  needs: readonly PackageNeed[],
  manager: PackageManager,
  host: BuildHost,
): Promise<ChosenNode> {
  const pick = (fit: PublishedVersion[]): PublishedVersion | null => bestNode(fit, needs);
  const node = await chooseTool({ ...stated, name: 'node', node: null, pick }, host);
  const npm = await chooseNpm(manager, node.version, host);
  return { node: node.version, tools: [node, npm], reason: reasonOf(node.version, stated, needs), note: null };
}

/** With the npm of the host, unless the source asks for another one. */
async function nodeOfHost(node: string, manager: PackageManager, host: BuildHost, reason: string): Promise<ChosenNode> {
  const npm = host.facts.programs.npm?.version;
  const isAsked = manager.name === 'npm' && manager.range !== null;
  const isOurs = npm !== undefined && (!isAsked || satisfies(npm, manager.range ?? '*') !== false);
  return { node, tools: isOurs ? [] : [await chooseNpm(manager, node, host)], reason, note: null };
}

function chooseNpm(manager: PackageManager, node: string, host: BuildHost): Promise<Tool> {
  const { range, statedBy } = manager.name === 'npm' ? manager : { range: null, statedBy: null };
  return chooseTool({ name: 'npm', range, statedBy, node }, host);
}

function chooseManager(
  { range, statedBy }: PackageManager,
  name: ManagerName,
  node: string,
  host: BuildHost,
): Promise<Tool> {
  // pnpm 11 wants a newer Node.js than many sources, and 12 is another program: who wants them says so.
  return chooseTool({ name, range, statedBy, node: name === 'bun' ? null : node }, host);
}

async function chooseTool({ name, range, statedBy, node, pick = highest }: Request, host: BuildHost): Promise<Tool> {
  const packageName = host.toolchains.packageOf(name, firstVersion(range));
  if (packageName === null)
    throw new BuildError(`${TITLES[name]} is not available for this platform. Ask the operator to install it.`);
  const all = await host.toolchains.versions(name, packageName, host.ctx);
  const fit = all.filter(
    ({ version, node: needs }) =>
      (range === null || satisfies(version, range) === true) &&
      (node === null || needs === null || satisfies(node, needs) !== false),
  );
  const best = pick(fit);
  if (best !== null) return { name, version: best.version, package: packageName };
  const asked = `${TITLES[name]}${range === null ? '' : ` ${range}`}${statedBy === null ? '' : ` (${statedBy})`}`;
  const forNode = node === null ? '' : ` that runs with Node.js ${node}`;
  throw new BuildError(`The source asks for ${asked}, but the npm registry has no such version${forNode}.`);
}

/** A version within the range, to tell which package has it. */
function firstVersion(range: string | null): string | null {
  const text = /\d+(\.\d+)*/.exec(range ?? '')?.[0];
  if (text === undefined) return null;
  return isExact(text) ? text : `${text.split('.')[0]}.0.0`;
}
