// The languages that the platform builds, and which of them a source uses.
import type { PlanKind } from '../builder';
import { detectGo } from './go/go';
import { detectJava } from './java/java';
import type { BuildHost, LanguagePlan } from './language_plan';
import { detectNode, detectNodeFile } from './node/node';
import { detectPhp } from './php/php';
import { detectPython } from './python/python';
import { detectRuby } from './ruby/ruby';
import { detectRust } from './rust/rust';
import type { SourceFiles } from './source_files';

const downloaded = [detectNode, detectPython, detectGo];
/** A Dockerfile comes before them, since a host need not have them. */
const ofHost = [detectRust, detectJava, detectPhp, detectRuby];
const languages = [...downloaded, ...ofHost];
const NAMES: Partial<Record<PlanKind, string>> = {
  ...{ node: 'Node.js', python: 'Python', go: 'Go' },
  ...{ rust: 'Rust', java: 'Java', php: 'PHP', ruby: 'Ruby' },
};

/** All that the source uses, in the order of their plans. */
export async function detectLanguages(files: SourceFiles, host: BuildHost): Promise<LanguagePlan[]> {
  const found = await Promise.all(languages.map((detect) => detect(files, host)));
  return found.filter((part) => part !== null);
}

/**
 * Detected languages, up to the first one with a start command: earlier ones only contribute to the build.
 * @param hasImage a Dockerfile of the source can be built
 */
export async function detectUntilStart(files: SourceFiles, host: BuildHost, hasImage = false): Promise<LanguagePlan[]> {
  const parts: LanguagePlan[] = [];
  for (const detect of [...(hasImage ? downloaded : languages), detectNodeFile]) {
    const part = await detect(files, host);
    if (part !== null) parts.push(part);
    if (part !== null && startsSomething(part)) break;
  }
  return parts;
}

/** Whether a start command was found. */
export function startsSomething({ processes }: LanguagePlan): boolean {
  return Object.keys(processes).length > 0;
}

/** Their names, as in messages. */
export function knownLanguages(parts: LanguagePlan[]): string[] {
  return parts.flatMap(({ kind }) => NAMES[kind] ?? []);
}
