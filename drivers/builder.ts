// How the files of a source become something that runs: what language it is, which commands build it, which start it.
// A builder only reads and plans; the commands run as a unit of the runtime.
import type { HostFacts } from '../core/catalog/host_facts';
import type { DriverContext } from '../core/driver';
import type { Tool } from './toolchain';

export type PlanKind = 'custom' | 'procfile' | 'node' | 'static' | 'python' | 'go' | 'dockerfile' | 'image';

/** Of the settings of an application. */
export interface BuildSettings {
  builder: 'buildpack' | 'dockerfile';
  /** Relative to the root of the source. */
  root_directory: string;
  dockerfile_path: string;
  /** Stage of it; null: the last one. */
  dockerfile_target?: string | null;
  build_command: string | null;
}

/** Name of the step that `build_command` of the settings is. */
export const BUILD_COMMAND = 'Build command';

export interface BuildPlan {
  kind: PlanKind;
  /** One line for the build log: `Node.js, npm ci, build script`. */
  summary: string;
  /** Why it is these versions: sentences for the log. */
  reasons?: string[];
  /** What the owner should know of it: sentences for the log. */
  notes?: string[];
  /** Programs that do not come from the host; absent in plans of earlier versions, as `programs` is. */
  tools?: Tool[];
  /** Shell commands, one after another, in the root directory of the source. */
  steps: { name: string; command: string }[];
  /** Directories of programs that processes can call by name, relative to the root directory of the source. */
  programs?: string[];
  /** Name of a Dockerfile, and on which line each step of each stage is. */
  dockerfile?: { name: string; lines: number[][] };
  /** Commands by process type. */
  processes: Record<string, string>;
  /** From a Procfile; the setting of the application wins over it. */
  release_command: string | null;
  /** Variables that build and processes get unless the user has set them (NODE_ENV). */
  env: Record<string, string>;
}

/** Whether a unit has to run: without a step too it leaves what processes find by name (`tools`, `programs`). */
export function hasBuild({ steps, tools = [], programs = [] }: BuildPlan): boolean {
  return steps.length + tools.length + programs.length > 0;
}

export interface BuildDirectories {
  /** The files of the source. */
  directory: string;
  /** Kept between builds of one application; empty after clear_cache. */
  cache: string;
}

export interface BuildDriver {
  /**
   * Finds out how to build and start what is in the directory. Only reads, asks the npm registry for versions, and gets
   * a Node.js from it where that of the host would do if it could not be had.
   * @throws BuildError where nothing fits, or the host lacks what is needed; the message says what to do. DriverError
   *   transient where the registry does not answer
   */
  detect(directory: string, settings: BuildSettings, facts: HostFacts, ctx: DriverContext): Promise<BuildPlan>;
  /** Gets the programs of the plan that this host does not have yet. @throws DriverError */
  ensureTools(plan: BuildPlan, ctx: DriverContext): Promise<void>;
  /**
   * What the processes of a plan run beside its files, where they do not run on this host.
   * @throws DriverError invalid where that is a program of this host alone
   */
  runTimeTools(plan: BuildPlan, commands: readonly string[], facts: HostFacts): Tool[];
  /**
   * What a unit runs: a POSIX shell script that prints `-----> name` before each step and ends at the first failure,
   * and its variables beside those of the plan: `env` are ours (HOME, caches), `defaults` give way to those of the
   * user.
   */
  task(
    plan: BuildPlan,
    directories: BuildDirectories,
    ctx: DriverContext,
  ): Promise<{ command: string; env: Record<string, string>; defaults: Record<string, string> }>;
}

/** The message is a sentence for users. */
export class BuildError extends Error {
  override readonly name = 'BuildError';
}
