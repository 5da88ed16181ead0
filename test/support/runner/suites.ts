// Public test suites, whose sources are not ours: they lie below SUITES_DIR, one folder each (test/suites/README.md).
import { existsSync } from 'node:fs';
import path from 'node:path';
import { readSource } from './repository';

const DIRECTORY = process.env.SUITES_DIR;

/**
 * `describe` for a suite; skipped by name where its sources, or what it needs beside them, are not there.
 * @param needed paths below SUITES_DIR
 */
export function describeSuite(
  folder: string,
  needed: readonly string[],
  run: (place: (name: string) => string) => void,
) {
  const place = (name: string): string => path.join(path.resolve(DIRECTORY ?? '.'), name);
  const missing = [folder, ...needed].filter((name) => !DIRECTORY || !existsSync(place(name)));
  const reason = DIRECTORY ? `needs: ${missing.join(', ')} in SUITES_DIR` : 'needs: SUITES_DIR';
  if (missing.length === 0) describe(folder, () => run(place));
  else describe.skip(`${folder} (${reason})`, () => run(place));
}

export type Outcome = 'passed' | 'failed' | 'skipped';

/**
 * Why a test of a suite does not pass. `not_offered`: we do not have what it is about; `differs`: we do it our way;
 * `suite`: it does not test what it says, for example because its client does something else today.
 */
export interface Known {
  kind: 'not_offered' | 'differs' | 'suite';
  reason: string;
}

const isKind = (text: string | undefined): text is Known['kind'] =>
  text === 'not_offered' || text === 'differs' || text === 'suite';

/** A table of ours: kind, test, reason, with tabs between. The name may end with `*`. @throws Error */
export function knownFailures(file: string): Map<string, Known> {
  const known = new Map<string, Known>();
  for (const line of readSource(file).split('\n')) {
    if (!line || line.startsWith('#')) continue;
    const [kind, name, reason, ...more] = line.split('\t');
    if (!isKind(kind) || !name || !reason || more.length || known.has(name))
      throw new Error(`${file}: this line is malformed, or of a test that another line has: ${line}`);
    known.set(name, { kind, reason });
  }
  return known;
}

interface Judgement {
  /** Of the tests that are about what is offered: those that passed, and those that did not. */
  offered: { passed: number; failed: string[] };
  notOffered: number;
  /** Not in the table, and failed. */
  unexpected: string[];
  /** In the table, and passed: the line has to go. */
  stale: string[];
  /** In the table, and not in the suite. */
  unknown: string[];
}

export function judge(outcomes: ReadonlyMap<string, Outcome>, known: ReadonlyMap<string, Known>): Judgement {
  const lineOf = (name: string): string | undefined =>
    [...known.keys()].find((line) => line === name || (line.endsWith('*') && name.startsWith(line.slice(0, -1))));
  const result: Judgement = {
    ...{ offered: { passed: 0, failed: [] }, notOffered: 0, unexpected: [], stale: [] },
    unknown: [],
  };
  const used = new Set<string>();
  for (const [name, outcome] of outcomes) {
    const line = lineOf(name);
    if (line !== undefined) used.add(line);
    const kind = line === undefined ? null : known.get(line)?.kind;
    const isOffered = kind !== 'not_offered' && kind !== 'suite';
    if (!isOffered) result.notOffered += 1;
    if (outcome === 'passed' && isOffered) result.offered.passed += 1;
    if (outcome === 'passed' && line !== undefined && !line.endsWith('*')) result.stale.push(name);
    if (outcome !== 'failed') continue;
    if (isOffered) result.offered.failed.push(name);
    if (line === undefined) result.unexpected.push(name);
  }
  result.unknown = [...known.keys()].filter((line) => !used.has(line));
  return result;
}
