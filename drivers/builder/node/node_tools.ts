// Selects Node.js and the package manager of a source, from the host or the npm registry.
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
  /** Tools downloaded from the registry. */
  tools: Tool[];
  /** Why this Node.js was chosen: a sentence. */
  reason: string;
  /** Note for the owner: a sentence. */
  note: string | null;
}

interface Request {
  name: ToolName;
  range: string | null;
  /** `engines.node`, `packageManager`: the source of the range. */
  statedBy: string | null;
  /** The version of Node.js that it must run with. */
  node: string | null;
  /** Selects among the matching versions; default: the highest. */
  pick?: (fit: PublishedVersion[]) => PublishedVersion | null;
}

type ChosenNode = Omit<NodeTools, 'manager'>;

/** Limit of the wait where the Node.js of the host is a fallback. */
const REGISTRY_ANSWER_MS = 20_000;
const DOWNLOAD_MS = 5 * 60_000;
const TITLES: Record<ToolName, string> = {
  ...{ node: 'Node.js', npm: 'npm', yarn: 'Yarn' },
  ...{ pnpm: 'pnpm', bun: 'Bun', go: 'Go' },
  ...{ uv: 'uv', python: 'Python', poetry: 'Poetry', pdm: 'PDM' },
};

/**
 * May download Node.js even where the one of the host is acceptable, to know whether it has to be used.
 * @throws BuildError where no version matches; DriverError transient where the registry does not respond
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

/** Node.js with the bundled npm. */
async function chooseNode(
  stated: StatedNode,
  needs: readonly PackageNeed[],
  manager: PackageManager,
  host: BuildHost,
): Promise<ChosenNode> {
  const ours = usableNodeOfHost(host, stated);
  if (ours === null) return nodeOfRegistry(stated, needs, manager, host);
  if (host.preferredNode === 'host')
    return nodeOfHost(ours, manager, host, `The Node.js ${ours} of the host is used, because PREFERRED_NODE is host.`);
  if (isNewestLine(ours, needs)) return nodeOfHost(ours, manager, host, reasonOf(ours, stated, needs));
  try {
    const found = await nodeOfRegistry(stated, needs, manager, withTime(host, REGISTRY_ANSWER_MS));
    if (majorOf(found.node) === majorOf(ours))
      return await nodeOfHost(ours, manager, host, reasonOf(ours, stated, needs));
    await host.toolchains.ensure(found.tools, withTime(host, DOWNLOAD_MS).ctx);
    return found;
  } catch (error) {
    if (host.ctx.signal.aborted || !(error instanceof DriverError || error instanceof BuildError)) throw error;
    const note = `Node.js ${ours} of the host is used, because a newer one could not be installed: ${error.message}`;
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

/** With the npm of the host, unless the source requires another one. */
async function nodeOfHost(node: string, manager: PackageManager, host: BuildHost, reason: string): Promise<ChosenNode> {
  const npm = host.facts.programs.npm?.version;
  const isRequired = manager.name === 'npm' && manager.range !== null;
  const isOurs = npm !== undefined && (!isRequired || satisfies(npm, manager.range ?? '*') !== false);
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
  // pnpm 11 requires a newer Node.js than many sources, and 12 is a different program: they have to be requested.
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
  const required = `${TITLES[name]}${range === null ? '' : ` ${range}`}${statedBy === null ? '' : ` (${statedBy})`}`;
  const forNode = node === null ? '' : ` that runs with Node.js ${node}`;
  throw new BuildError(`The source asks for ${required}, but the npm registry has no such version${forNode}.`);
}

/** A version within the range, to select the package that contains it. */
function firstVersion(range: string | null): string | null {
  const text = /\d+(\.\d+)*/.exec(range ?? '')?.[0];
  if (text === undefined) return null;
  return isExact(text) ? text : `${text.split('.')[0]}.0.0`;
}
