// Selects the Node.js of a source: the newest LTS line that the source and its packages allow, independent of the host.
// If it is unavailable, the Node.js of the host is used where the source allows it, with a note in the log.
import { BuildError } from '../../builder';
import { highest, majorOf, satisfies } from '../../toolchain/versions';
import type { PublishedVersion } from '../../toolchain';
import type { BuildHost } from '../language_plan';
import { printable } from '../message_text';
import type { PackageNeed } from './package_engines';
import type { Package } from './package_json';
import type { SourceFiles } from '../source_files';
import type { Workspace } from './workspace';

/** The Node.js version stated by the source. */
export interface StatedNode {
  /** null where nothing is stated, or no version numbers. */
  range: string | null;
  /** The original text; null where nothing is stated. */
  text: string | null;
  /** The file and field of the statement. */
  statedBy: string;
}

/** Majors with long-term support, newest first. */
const LONG_TERM_LINES = ['24', '22', '20', '18'];
const CODENAMES: Record<string, string> = { hydrogen: '18', iron: '20', jod: '22', krypton: '24' };

/**
 * `engines.node`, else the files of version managers, in the first directory that has one of them, starting at the root
 * directory and continuing above.
 */
export async function statedNode(found: Package, files: SourceFiles, workspace: Workspace): Promise<StatedNode> {
  for (const place of [{ files, up: '.' }, ...files.above()]) {
    const node = (place.up === '.' ? found : place.up === workspace.up ? workspace.found : null)?.engines.node;
    if (node !== undefined) return { range: readable(node), text: node, statedBy: 'engines.node of package.json' };
    for (const name of ['.node-version', '.nvmrc']) {
      const line = (await place.files.read(name))?.trim().split(/\s/)[0] ?? '';
      if (line !== '') return { range: readable(line), text: line, statedBy: name };
    }
  }
  return { range: null, text: null, statedBy: 'package.json' };
}

/** The first version that runs TypeScript without a flag (https://nodejs.org/api/typescript.html). */
const STRIPS_TYPES = '>=22.18.0';

/**
 * For a start command that is a file of TypeScript.
 * @throws BuildError where the source asks for a Node.js that does not run it
 */
export function withTypeStripping(stated: StatedNode, file: string | undefined): StatedNode {
  if (file === undefined) return stated;
  if (stated.range === null) return { range: STRIPS_TYPES, text: STRIPS_TYPES, statedBy: file };
  const range = stated.range
    .split('||')
    .map((one) => `${one} ${STRIPS_TYPES}`)
    .join('||');
  if (['22.999.999', '24.999.999', '26.999.999'].some((version) => satisfies(version, range)))
    return { ...stated, range };
  throw new BuildError(
    `${file} is TypeScript, which Node.js runs from 22.18 on, and ${stated.statedBy} asks for ` +
      `${printable(stated.text ?? '')}. Ask for a newer one, or add a start script to package.json.`,
  );
}

/** Resolves codenames such as `lts/jod`; an unreadable statement is ignored. */
function readable(text: string): string | null {
  const codename = /^lts\/(\w+|\*)$/i.exec(text.trim())?.[1]?.toLowerCase();
  if (codename !== undefined) return CODENAMES[codename] ?? LONG_TERM_LINES[0]!;
  return satisfies('20.0.0', text) === null ? null : text;
}

/** The version of the host, where the source allows it; else null. */
export function usableNodeOfHost({ facts }: BuildHost, { range }: StatedNode): string | null {
  const version = facts.programs.node?.version ?? null;
  return version !== null && (range === null || satisfies(version, range) !== false) ? version : null;
}

/** Whether it is from the newest line, so that no query is needed. */
export function isNewestLine(version: string, needs: readonly PackageNeed[]): boolean {
  return String(majorOf(version)) === LONG_TERM_LINES[0] && unmet(version, needs).length === 0;
}

/** The newest LTS version within the range that most packages allow; else the highest even major, or any. */
export function bestNode(fit: PublishedVersion[], needs: readonly PackageNeed[]): PublishedVersion | null {
  const lines = LONG_TERM_LINES.map((line) => fit.filter(({ version }) => String(majorOf(version)) === line));
  const counted = lines.flatMap((line) => {
    const fewest = Math.min(...line.map(({ version }) => unmet(version, needs).length));
    const best = highest(line.filter(({ version }) => unmet(version, needs).length === fewest));
    return best === null ? [] : [{ best, fewest }];
  });
  const least = Math.min(...counted.map(({ fewest }) => fewest));
  const even = fit.filter(({ version }) => majorOf(version) % 2 === 0);
  return counted.find(({ fewest }) => fewest === least)?.best ?? highest(even) ?? highest(fit);
}

/** A sentence for the log: the version, and why it was chosen. */
export function reasonOf(version: string, stated: StatedNode, needs: readonly PackageNeed[]): string {
  const line = `Node.js ${version} is`;
  const { range, text, statedBy } = stated;
  if (range !== null) return `${line} what ${statedBy} asks for (${printable(text ?? range)}).`;
  const newest = LONG_TERM_LINES[0]!;
  const without = text === null ? 'names no version' : `names none in ${statedBy} (${printable(text)})`;
  const excluding = needs.find(
    (need) => unmet(version, [need]).length === 0 && unmet(`${newest}.999.999`, [need]).length > 0,
  );
  if (String(majorOf(version)) === newest || excluding === undefined)
    return `${line} of the newest long-term line, since the source ${without}.`;
  const needed = `${printable(excluding.name)} needs ${printable(excluding.range)}`;
  return `${line} of the newest long-term line that the packages allow: ${needed}.`;
}

function unmet(version: string, needs: readonly PackageNeed[]): PackageNeed[] {
  return needs.filter(({ range }) => satisfies(version, range) === false);
}
