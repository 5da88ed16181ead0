// What no reader has taken: each key of the source is either taken over or listed.
import { childNodesOf, isNull, type Node } from './node';
import { report, type Finding, type ImportRun } from './run';

/** Why keys are not taken over: by their names, anywhere in the file. */
export type Reasons = Readonly<Record<string, readonly [reason: string, nearest?: string]>>;

const UNKNOWN = 'platform.yaml has nothing for this key.';

export function reportUntaken(run: ImportRun, reasons: Reasons): void {
  for (const root of run.roots) sweepBelow(run, root, reasons);
  run.findings = distinct(run.findings);
  run.findings.sort((a, b) => (a.path === b.path ? a.line - b.line : a.path < b.path ? -1 : 1));
}

/** Several services may name one file of variables. */
const distinct = (findings: readonly Finding[]): Finding[] => [
  ...new Map(findings.map((one) => [JSON.stringify(one), one])).values(),
];

function sweepBelow(run: ImportRun, node: Node, reasons: Reasons): void {
  if (node.is !== 'map') {
    for (const one of childNodesOf(node)) sweepOne(run, one, '', reasons);
    return;
  }
  for (const [name, one] of node.entries) sweepOne(run, one, name, reasons);
}

function sweepOne(run: ImportRun, node: Node, name: string, reasons: Reasons): void {
  // Defaults behind an anchor are judged where they are used.
  if (!node.isTaken && name.startsWith('x-') && hasAnchor(node)) return;
  if (node.isTaken || isEmpty(node)) return sweepBelow(run, node, reasons);
  const [reason, nearest] = (Object.hasOwn(reasons, name) ? reasons[name] : undefined) ?? [UNKNOWN];
  report(run, node, reason, nearest ?? null);
}

const hasAnchor = (node: Node): boolean => node.isAnchor === true || childNodesOf(node).some(hasAnchor);

const isEmpty = (node: Node): boolean => isNull(node) || (node.is !== 'scalar' && childNodesOf(node).length === 0);
