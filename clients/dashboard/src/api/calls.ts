// The calls that the page on the screen has made, for "as API call".
import { signal } from '@preact/signals';

export interface Call {
  query: string;
  variables: Record<string, unknown>;
}

export const calls = signal<readonly Call[]>([]);

/** Mutations, what names a password, and what is read once for all pages are not shown. */
const HIDDEN = /^\s*(mutation|query Palette|query CatalogNames\b)|\bviewer\b|loginMethods|setupProgress/;

export function noteCall(query: string, variables: unknown): void {
  if (HIDDEN.test(query)) return;
  const call = { query: unindent(query), variables: variables as Call['variables'] };
  const isSame = (one: Call): boolean => one.query === call.query && same(one.variables, call.variables);
  // Of the pages of a list, the one that was asked for last.
  calls.value = [...calls.peek().filter((one) => !isSame(one)), call];
}

/** A new page begins. */
export function forgetCalls(): void {
  calls.value = [];
}

function same({ cursor: _, ...left }: Call['variables'], { cursor: __, ...right }: Call['variables']): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function unindent(text: string): string {
  const lines = text.replace(/^\s*\n|\s+$/g, '').split('\n');
  const depths = lines.filter((line) => line.trim()).map((line) => line.length - line.trimStart().length);
  const depth = Math.min(...depths.slice(depths[0] === 0 ? 1 : 0), 40);
  return lines.map((line) => (/^\s/.test(line) ? line.slice(Math.min(depth, line.search(/\S|$/))) : line)).join('\n');
}
