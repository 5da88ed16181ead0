// Which Node.js and which package manager a source gets: those of the host where they fit, else from the npm registry.
import { highest, isExact, majorOf, satisfies } from '../../core/semver';
import { BuildError } from '../builder';
import type { PublishedVersion, Tool, ToolName } from '../toolchain';
import type { BuildHost } from './language_plan';
import type { Package } from './package_json';
import type { ManagerName, PackageManager } from './package_manager';
import type { SourceFiles } from './source_files';

export interface NodeTools {
  /** Version of Node.js. */
  node: string;
  /** Version of the package manager. */
  manager: string;
  /** Those of them that come from the registry. */
  tools: Tool[];
}

interface Request {
  name: ToolName;
  range: string | null;
  /** `engines.node`, `packageManager`: where the range stands. */
  statedBy: string | null;
  /** The version of Node.js that it must run with. */
  node: string | null;
  /** Ranges that are tried one after another; else the highest version wins. */
  preferred?: readonly string[];
}

/** Even majors with long-term support, the newest first. */
const OFFERED = ['24', '22', '20', '18'];
const CODENAMES: Record<string, string> = { hydrogen: '18', iron: '20', jod: '22', krypton: '24' };
const TITLES: Record<ToolName, string> = { node: 'Node.js', npm: 'npm', yarn: 'Yarn', pnpm: 'pnpm', bun: 'Bun' };

/** @throws BuildError where no version fits; DriverError transient where the registry does not answer */
export async function chooseNodeTools(
  found: Package,
  manager: PackageManager,
  files: SourceFiles,
  host: BuildHost,
): Promise<NodeTools> {
  const wanted = await statedNode(found, files);
  const ours = host.facts.programs.node?.version ?? null;
  const isOurs = ours !== null && (wanted.range === null || satisfies(ours, wanted.range) !== false);
  const node = isOurs ? null : await chooseTool({ name: 'node', node: null, preferred: OFFERED, ...wanted }, host);
  const nodeVersion = node?.version ?? ours!;
  const npm = await chooseNpm(manager, node === null, nodeVersion, host);
  const other = manager.name === 'npm' ? null : await chooseManager(manager, manager.name, nodeVersion, host);
  return {
    node: nodeVersion,
    manager: other?.version ?? npm?.version ?? host.facts.programs.npm!.version,
    tools: [node, npm, other].filter((tool) => tool !== null),
  };
}

/** `engines.node`, else what version managers read. */
async function statedNode(
  { engines }: Package,
  files: SourceFiles,
): Promise<{ range: string | null; statedBy: string }> {
  if (engines.node !== undefined) return { range: readable(engines.node), statedBy: 'engines.node of package.json' };
  for (const name of ['.node-version', '.nvmrc']) {
    const line = (await files.read(name))?.trim().split(/\s/)[0] ?? '';
    if (line !== '') return { range: readable(line), statedBy: name };
  }
  return { range: null, statedBy: 'package.json' };
}

/** `lts/jod` and the like are no ranges; what nobody can read leaves the choice to us. */
function readable(text: string): string | null {
  const codename = /^lts\/(\w+|\*)$/i.exec(text.trim())?.[1]?.toLowerCase();
  if (codename !== undefined) return CODENAMES[codename] ?? OFFERED[0]!;
  return satisfies('20.0.0', text) === null ? null : text;
}

/** The npm of the host belongs to the Node.js of the host. */
async function chooseNpm(
  manager: PackageManager,
  isOurs: boolean,
  node: string,
  host: BuildHost,
): Promise<Tool | null> {
  const ours = host.facts.programs.npm?.version;
  const { range, statedBy } = manager.name === 'npm' ? manager : { range: null, statedBy: null };
  if (isOurs && ours !== undefined && (range === null || satisfies(ours, range) !== false)) return null;
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

async function chooseTool({ name, range, statedBy, node, preferred }: Request, host: BuildHost): Promise<Tool> {
  const packageName = host.toolchains.packageOf(name, firstVersion(range));
  if (packageName === null)
    throw new BuildError(`${TITLES[name]} is not available for this platform. Ask the operator to install it.`);
  const all = await host.toolchains.versions(name, packageName, host.ctx);
  const fit = all.filter(
    ({ version, node: needs }) =>
      (range === null || satisfies(version, range) === true) &&
      (node === null || needs === null || satisfies(node, needs) !== false),
  );
  const best = bestOf(fit, preferred ?? []);
  if (best !== null) return { name, version: best.version, package: packageName };
  const asked = `${TITLES[name]}${range === null ? '' : ` ${range}`}${statedBy === null ? '' : ` (${statedBy})`}`;
  const forNode = node === null ? '' : ` that runs with Node.js ${node}`;
  throw new BuildError(`The source asks for ${asked}, but the npm registry has no such version${forNode}.`);
}

function bestOf(versions: PublishedVersion[], preferred: readonly string[]): PublishedVersion | null {
  for (const range of preferred) {
    const found = highest(versions.filter(({ version }) => satisfies(version, range)));
    if (found !== null) return found;
  }
  const even = versions.filter(({ version }) => majorOf(version) % 2 === 0);
  return (preferred.length > 0 ? highest(even) : null) ?? highest(versions);
}

/** A version within the range, to tell which package has it. */
function firstVersion(range: string | null): string | null {
  const text = /\d+(\.\d+)*/.exec(range ?? '')?.[0];
  if (text === undefined) return null;
  return isExact(text) ? text : `${text.split('.')[0]}.0.0`;
}
