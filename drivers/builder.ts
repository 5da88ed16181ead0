// Builders: determine the language of a source, its build commands and its start commands. A builder only reads and
// plans; the commands run as a unit of the runtime.
import type { HostFacts } from '../core/catalog/host_facts';
import type { DriverContext } from '../core/driver';
import type { Tool } from './toolchain';

type Language = 'node' | 'python' | 'go' | 'rust' | 'java' | 'php' | 'ruby';
export type PlanKind = 'custom' | 'procfile' | 'static' | 'dockerfile' | 'image' | Language;

/** Build settings of an application. */
export interface BuildSettings {
  builder: 'buildpack' | 'dockerfile';
  /** Relative to the root of the source. */
  root_directory: string;
  dockerfile_path: string;
  /** Stage of the Dockerfile; null: the last one. */
  dockerfile_target?: string | null;
  build_command: string | null;
  /** Relative to the root directory: served as a site. null: what is known of the source decides. */
  output_directory?: string | null;
  /** A program of the source may have the name of its application. */
  application_name?: string;
  /** Commands of the settings, by process type. */
  commands?: Readonly<Record<string, string>>;
}

/** Step name of the setting `build_command`. */
export const BUILD_COMMAND = 'Build command';

export interface BuildPlan {
  kind: PlanKind;
  /** One line for the build log: `Node.js, npm ci, build script`. */
  summary: string;
  /** Why these versions were chosen: sentences for the log. */
  reasons?: string[];
  /** Notes for the owner: sentences for the log. */
  notes?: string[];
  /** Programs that are downloaded; absent in plans of earlier versions, as is `programs`. */
  tools?: Tool[];
  /** The Go whose standard library is compiled once for the host; `program` is null for that of `tools`. */
  go?: { version: string; program: string | null };
  /** Shell commands in order, in the root directory of the source. */
  steps: { name: string; command: string }[];
  /** Directories in the PATH of processes, relative to the root directory of the source. */
  programs?: string[];
  /** Name of a Dockerfile, and the line number of each step by stage. */
  dockerfile?: { name: string; lines: number[][] };
  /** Commands by process type. */
  processes: Record<string, string>;
  /** Why there is no `web`: what was recognised, and what is missing. Sentences. */
  missing?: string;
  /** From a Procfile; the setting of the application takes precedence. */
  release_command: string | null;
  /** Default variables of build and processes (NODE_ENV). */
  env: Record<string, string>;
}

/** Whether a build unit has to run: even without steps it installs programs (`tools`, `programs`). */
export function hasBuild({ steps, tools = [], programs = [] }: BuildPlan): boolean {
  return steps.length + tools.length + programs.length > 0;
}

export interface BuildDirectories {
  /** Directory of the source. */
  directory: string;
  /** Build cache of the application; empty after clear_cache. */
  cache: string;
}

export interface BuildDriver {
  /**
   * Determines how to build and start the source in the directory. Only reads files and queries the npm registry for
   * versions; may download a Node.js, to know whether the one of the host must be used instead.
   * @throws BuildError where no language matches, or the host lacks a program; the message says what to do. DriverError
   * transient where the registry does not respond
   */
  detect(directory: string, settings: BuildSettings, facts: HostFacts, ctx: DriverContext): Promise<BuildPlan>;
  /**
   * Downloads programs of the plan that are missing on this host, and compiles the library of its Go.
   * @param onWork gets a sentence for the log before work that takes minutes
   * @throws DriverError
   */
  ensureTools(plan: BuildPlan, ctx: DriverContext, onWork?: (sentence: string) => Promise<void>): Promise<void>;
  /**
   * What the processes of a plan run beside its files, where they do not run on this host.
   * @throws DriverError invalid where that is a program of this host alone
   */
  runTimeTools(plan: BuildPlan, commands: readonly string[], facts: HostFacts): Tool[];
  /**
   * What a unit runs: a POSIX shell script that prints `-----> name` before each step and ends at the first failure,
   * and its variables in addition to the plan's: `env` belongs to the platform (HOME, caches), `defaults` are
   * overridden by variables of the user.
   */
  task(
    plan: BuildPlan,
    directories: BuildDirectories,
    ctx: DriverContext,
  ): Promise<{ command: string; env: Record<string, string>; defaults: Record<string, string> }>;
}

/** The message is shown to users. */
export class BuildError extends Error {
  override readonly name = 'BuildError';
}
