// What one language has to say about a source. A plan is made of one or more of them.
import type { HostFacts } from '../../core/catalog/host_facts';
import type { BuildPlan, PlanKind } from '../builder';
import type { DriverContext } from '../../core/driver';
import type { Tool, ToolchainDriver } from '../toolchain';
import type { SourceFiles } from './source_files';

export type Step = BuildPlan['steps'][number];

export interface LanguagePlan {
  kind: PlanKind;
  /** What is found and done, in a few words each. */
  summary: string[];
  /** Why it is these versions: sentences for the log. */
  reasons?: string[];
  tools: Tool[];
  steps: Step[];
  /** Steps after these that make the files a site, where nothing else is to serve them. */
  site: Step[];
  /** A build script of its own makes files, which are a site where nothing else is started. */
  hasBuildScript?: boolean;
  /** Where that is known to leave a site beside the usual places. */
  siteDirectories?: string[];
  /** Removes, after all of these, what only the build needed. */
  prune: string | null;
  processes: Record<string, string>;
  env: Record<string, string>;
  /** What the owner should know of it: sentences. */
  notes?: string[];
  /** Directories of programs that processes can call by name, relative to the root directory. */
  programs: string[];
}

/** Where the source leaves the choice: the newest long-term line, or the Node.js of the host wherever it fits. */
export type PreferredNode = 'long_term' | 'host';

/** As PreferredNode, of Python: the newest line that packages are made for. */
export type PreferredPython = 'newest' | 'host';

/** What there is to build with. */
export interface BuildHost {
  facts: HostFacts;
  toolchains: ToolchainDriver;
  preferredNode: PreferredNode;
  preferredPython: PreferredPython;
  /** What is built runs elsewhere too: with a Python of the host it could not, since environments link to theirs. */
  isPortable: boolean;
  ctx: DriverContext;
}

/** Reads the files; null where they are not of this language. @throws BuildError */
export type DetectLanguage = (files: SourceFiles, host: BuildHost) => Promise<LanguagePlan | null>;

/** For `sh`: one word that says what the text says. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
