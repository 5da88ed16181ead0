// Programs that a build needs in a version of its own: Node.js and the package managers, from the npm registry, Go,
// from a proxy of Go modules, uv, from a Python package index, and Python, by uv. They are kept once per host and seen
// read-only by all units.
import type { DriverContext } from '../core/driver';

export type ToolName = 'node' | 'npm' | 'yarn' | 'pnpm' | 'bun' | 'go' | 'uv' | 'python';

/** A program in one version. `package` is its package in the npm registry, or its module. */
export interface Tool {
  name: ToolName;
  version: string;
  package: string;
}

/** A version that somebody published. `node` is the range of Node.js versions that it runs with, null for any. */
export interface PublishedVersion {
  version: string;
  node: string | null;
}

/** How npm of this host reaches its registry, without credentials: for builds, which have a HOME of their own. */
export interface RegistrySettings {
  /** Lines of configuration files in the HOME of a build, by name; a file of the project wins over them. */
  files: Record<string, string[]>;
  /** Proxies, that of Go modules among them, the Python package index, and authorities of the operator. */
  env: Record<string, string>;
}

export interface ToolchainDriver {
  /**
   * The package that has the program for this host; null where there is none. `version` decides where its name has
   * changed.
   */
  packageOf(name: ToolName, version: string | null): string | null;
  /**
   * Versions of the program, kept ones among them: in the registry, or, where that does not answer, on this host alone.
   * @throws DriverError transient where the registry does not answer and nothing is kept
   */
  versions(name: ToolName, packageName: string, ctx: DriverContext): Promise<PublishedVersion[]>;
  /**
   * Downloads what is not here yet, checks it against the integrity that the registry states, and that it runs.
   * @throws DriverError
   */
  ensure(tools: readonly Tool[], ctx: DriverContext): Promise<void>;
  /** The directory with its programs, as units see it. */
  binDirectory(tool: Tool): string;
  registry(ctx: DriverContext): Promise<RegistrySettings>;
}
