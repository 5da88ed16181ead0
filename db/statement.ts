import { createHash } from 'node:crypto';
import type { Statement } from '../core/context';

const statements = new Map<string, Statement>();

/**
 * A named statement for a text: the same text always gets the same name, so each connection plans it once.
 * Texts must come from a bounded set (columns and filters of the SDL), never from a client.
 */
export function named(text: string, more: Pick<Statement, 'quick' | 'makes'> = {}): Statement {
  const known = statements.get(text);
  if (known) return known;
  const statement: Statement = { name: createHash('sha256').update(text).digest('hex').slice(0, 24), text, ...more };
  statements.set(text, statement);
  return statement;
}

/** The same for a read of a few rows by an index, which may share its connection with others (db/batches.ts). */
export function quick(text: string, makes?: Statement['makes']): Statement {
  return named(text, { quick: true, makes });
}
