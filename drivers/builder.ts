// How the files of a source become something that runs: what language it is, which commands build it, which start it.
// A builder only reads and plans; the commands run as a unit of the runtime.
import type { HostFacts } from '../core/host_facts';
import type { DriverContext } from './driver';

export type PlanKind = 'custom' | 'procfile' | 'node' | 'static' | 'python' | 'go' | 'dockerfile';

/** Of the settings of an application. */
export interface BuildSettings {
  builder: 'buildpack' | 'dockerfile';
  /** Relative to the root of the source. */
  root_directory: string;
  dockerfile_path: string;
  build_command: string | null;
}

export interface BuildPlan {
  kind: PlanKind;
  /** One line for the build log: `Node.js, npm ci, build script`. */
  summary: string;
  /** Shell commands, one after another, in the root directory of the source. */
  steps: { name: string; command: string }[];
  /** Commands by process type. */
  processes: Record<string, string>;
  /** From a Procfile; the setting of the application wins over it. */
  release_command: string | null;
  /** Variables that build and processes get unless the user has set them (NODE_ENV). */
  env: Record<string, string>;
}

export interface BuildDirectories {
  /** The files of the source. */
  directory: string;
  /** Kept between builds of one application; empty after clear_cache. */
  cache: string;
}

export interface BuildDriver {
  /**
   * Finds out how to build and start what is in the directory. Only reads.
   * @throws BuildError where nothing fits, or the host lacks what is needed; the message says what to do
   */
  detect(directory: string, settings: BuildSettings, facts: HostFacts, ctx: DriverContext): Promise<BuildPlan>;
  /**
   * One POSIX shell script that runs all steps, prints `-----> name` before each and ends at the first failure. Written
   * for `sh`.
   */
  script(plan: BuildPlan): string;
  /** Variables that a build needs beside those of the plan: caches of the package managers, HOME. */
  environment(place: BuildDirectories): Record<string, string>;
}

/** The message is a sentence for users. */
export class BuildError extends Error {
  override readonly name = 'BuildError';
}
