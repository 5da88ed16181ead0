// What source files import, read from their text.
import path from 'node:path';
import { readSource } from './repository';

export interface Import {
  /** As it is written: a package, or a relative path. */
  target: string;
  /** Whether it is gone at run time: `import type`, or nothing but `type` names in the braces. */
  typeOnly: boolean;
  /** `import()` inside a function: loaded when it is called. */
  lazy: boolean;
}

const STATEMENT = /^(?:import|export)\s+(?:([^'";]*?)\s*from\s*)?'([^']+)'/gm;
const CALL = /\b(import|require)\('([^']+)'\)/g;

export function importsOf(file: string): Import[] {
  const text = readSource(file);
  const statements = [...text.matchAll(STATEMENT)].map(([, clause, target]) => ({
    target: target as string,
    typeOnly: isTypeOnly(clause ?? ''),
    lazy: false,
  }));
  const calls = [...text.matchAll(CALL)].map(([, verb, target]) => ({
    target: target as string,
    typeOnly: false,
    lazy: verb === 'import',
  }));
  return [...statements, ...calls];
}

/** The file of the repository that a relative import leads to, without its ending where it is none of ours. */
export function resolveImport(from: string, target: string, files: ReadonlySet<string>): string {
  const place = path.join(path.dirname(from), target);
  return [`${place}.ts`, `${place}.tsx`, `${place}/index.ts`, place].find((candidate) => files.has(candidate)) ?? place;
}

/**
 * Circles among files that need each other while they are loaded, each as the sorted list of its files. An import of
 * types makes none, since nothing of it is left at run time, nor does one that waits for a call.
 */
export function importCircles(files: readonly string[]): string[][] {
  const known = new Set(files);
  return circlesIn(
    new Map(
      files.map((file) => [
        file,
        importsOf(file)
          .filter(({ target, typeOnly, lazy }) => target.startsWith('.') && !typeOnly && !lazy)
          .map(({ target }) => resolveImport(file, target, known))
          .filter((target) => known.has(target)),
      ]),
    ),
  );
}

/** Strongly connected components of more than one node (Tarjan 1972). */
export function circlesIn(edges: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const circles: string[][] = [];
  const visit = (node: string): void => {
    order.set(node, order.size);
    lowest.set(node, order.get(node) as number);
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) visit(next);
      if (stack.includes(next)) lowest.set(node, Math.min(lowest.get(node) as number, lowest.get(next) as number));
    }
    if (lowest.get(node) !== order.get(node)) return;
    const circle = stack.splice(stack.indexOf(node));
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const node of edges.keys()) if (!order.has(node)) visit(node);
  return circles;
}

function isTypeOnly(clause: string): boolean {
  if (/^type\s/.test(clause)) return true;
  const names = /^\{([^}]*)\}$/
    .exec(clause.trim())?.[1]
    ?.split(',')
    .filter((name) => name.trim());
  return Boolean(names?.length) && (names as string[]).every((name) => /^\s*type\s/.test(name));
}
