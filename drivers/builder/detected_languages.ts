// The languages that the platform builds, and which of them a source uses.
import type { PlanKind } from '../builder';
import { detectGo } from './go/go';
import type { BuildHost, LanguagePlan } from './language_plan';
import { detectNode, detectNodeFile } from './node/node';
import { detectPython } from './python/python';
import type { SourceFiles } from './source_files';

const languages = [detectNode, detectPython, detectGo];
const NAMES: Partial<Record<PlanKind, string>> = { node: 'Node.js', python: 'Python', go: 'Go' };

/** All that the source uses, in the order of their plans. */
export async function detectLanguages(files: SourceFiles, host: BuildHost): Promise<LanguagePlan[]> {
  const found = await Promise.all(languages.map((detect) => detect(files, host)));
  return found.filter((part) => part !== null);
}

/** Detected languages, up to the first one with a start command: earlier ones only contribute to the build. */
export async function detectUntilStart(files: SourceFiles, host: BuildHost): Promise<LanguagePlan[]> {
  const parts: LanguagePlan[] = [];
  for (const detect of [...languages, detectNodeFile]) {
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
