// The part of a plan contributed by one language. A plan merges one or more of them.
import type { HostFacts } from '../../core/catalog/host_facts';
import type { BuildPlan, PlanKind } from '../builder';
import type { DriverContext } from '../../core/driver';
import type { Tool, ToolchainDriver } from '../toolchain';
import type { SourceFiles } from './source_files';

export type Step = BuildPlan['steps'][number];

export interface LanguagePlan {
  kind: PlanKind;
  /** What was detected and is done, in a few words each. */
  summary: string[];
  /** Why these versions were chosen: sentences for the log. */
  reasons?: string[];
  tools: Tool[];
  steps: Step[];
  /** Its packages have files that builds of other languages read, so its steps come before theirs. */
  isFirst?: true;
  /** Further steps that serve the files as a site, used if nothing else is started. */
  site: Step[];
  /** The source has its own build script, whose output is a site if nothing else is started. */
  hasBuildScript?: boolean;
  /** Output directories of the build script, in addition to the usual ones. */
  siteDirectories?: string[];
  /** Command that removes build-only dependencies at the end. */
  prune: string | null;
  processes: Record<string, string>;
  /** Why `processes` has no `web`: what was recognised, and what is missing. Sentences for the owner. */
  missing?: string | null;
  env: Record<string, string>;
  go?: BuildPlan['go'];
  /** Notes for the owner: sentences. */
  notes?: string[];
  /** Directories in the PATH of processes, relative to the root directory. */
  programs: string[];
}

/** Default if the source does not state a version: the newest LTS line, or the Node.js of the host where it fits. */
export type PreferredNode = 'long_term' | 'host';

/** The same for Python: the newest line that packages support, or the Python of the host. */
export type PreferredPython = 'newest' | 'host';

/** The environment of a build. */
export interface BuildHost {
  facts: HostFacts;
  toolchains: ToolchainDriver;
  preferredNode: PreferredNode;
  preferredPython: PreferredPython;
  /** What is built runs elsewhere too: with a Python of the host it could not, since environments link to theirs. */
  isPortable: boolean;
  /** Of the application; the program of the source may have it too. */
  applicationName: string | null;
  /** Commands that are stated, in a Procfile or in settings, by process type. */
  commands: Readonly<Record<string, string>>;
  ctx: DriverContext;
}

/** Plans the build; null where the source does not use this language. @throws BuildError */
export type DetectLanguage = (files: SourceFiles, host: BuildHost) => Promise<LanguagePlan | null>;

/** Quotes a text as one word for `sh`. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
