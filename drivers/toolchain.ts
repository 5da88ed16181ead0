// Programs that builds need in a specific version: Node.js and package managers from the npm registry, Go from a Go
// module proxy, uv from a Python package index, and Python, Poetry and PDM, installed by uv. They are stored once per
// host, and mounted read-only by all units.
import type { DriverContext } from '../core/driver';

export type ToolName = 'node' | 'npm' | 'yarn' | 'pnpm' | 'bun' | 'go' | 'uv' | 'python' | 'poetry' | 'pdm';

/** A program in one version. `package` is its package in the npm registry, or its module. */
export interface Tool {
  name: ToolName;
  version: string;
  package: string;
}

/** A published version. `node` is the range of Node.js versions that it runs with, null for any. */
export interface PublishedVersion {
  version: string;
  node: string | null;
}

/** Registry settings of the host's npm, without credentials: for builds, which have their own HOME. */
export interface RegistrySettings {
  /** Lines of configuration files in the HOME of a build, by name; files of the project take precedence. */
  files: Record<string, string[]>;
  /** Proxies (also for Go modules), the Python package index, and certificate authorities of the operator. */
  env: Record<string, string>;
}

export interface ToolchainDriver {
  /**
   * The package with the program for this host; null where there is none. `version` selects among packages whose name
   * has changed.
   */
  packageOf(name: ToolName, version: string | null): string | null;
  /**
   * Versions of the program in the registry and on this host; only on this host where the registry does not respond.
   * @throws DriverError transient where the registry does not respond and nothing is stored
   */
  versions(name: ToolName, packageName: string, ctx: DriverContext): Promise<PublishedVersion[]>;
  /**
   * Downloads missing tools, verifies the integrity stated by the registry, and checks that they run.
   * @throws DriverError
   */
  ensure(tools: readonly Tool[], ctx: DriverContext): Promise<void>;
  /** Whether the standard library of this Go is compiled on this host, or does not compile. */
  hasGoLibrary(version: string): Promise<boolean>;
  /**
   * Compiles it for all builds of the host. A failure is none of a build: it compiles what it needs itself.
   * @param program path of Go; null for that of the store
   */
  ensureGoLibrary(version: string, program: string | null, ctx: DriverContext): Promise<void>;
  /** Lines of a build script that make Go use it, where it is there. */
  useGoLibrary(version: string): string[];
  /** The program directory, as mounted in units. */
  binDirectory(tool: Tool): string;
  registry(ctx: DriverContext): Promise<RegistrySettings>;
}
