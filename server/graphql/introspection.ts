// Queries for the schema itself take a thousand times as long as a read, and the schema is the same for everybody:
// answers are kept by document. Who has a key pays points for them, others are counted by address.
import { setImmediate } from 'node:timers/promises';
import { requireBudget } from '../../contract/guard';
import type { Context } from '../../core/context';
import { limits } from '../../core/limits';
import type { Platform } from '../platform/platform';
import { addressBlock } from '../../core/protocols/addresses';

/** What a query was answered with. */
export interface Executed {
  status: number;
  headers: Record<string, string>;
  text: string;
  /** Without errors. */
  isWhole: boolean;
}

interface SchemaQuery {
  query: string;
  operationName: string | undefined;
  /** Selects only the schema, without variables. */
  isConstant: boolean;
}

export interface Introspection {
  /** @throws rate_limited */
  charge(ctx: Context): Promise<void>;
  /**
   * The answer of a query for the schema: one that was given before where the query is always answered the same.
   */
  answer(query: SchemaQuery, run: () => Promise<Executed>): Promise<Executed>;
}

const ANSWERS_MAX = 8;

export function openIntrospection({ attempts }: Platform): Introspection {
  const answers = new Map<string, Executed>();
  let last: Promise<unknown> = Promise.resolve();
  // Serialized, with other requests in between: many in a row would block the event loop.
  const inTurn = (run: () => Promise<Executed>): Promise<Executed> => {
    const turn = last.then(() => setImmediate()).then(run);
    last = turn.catch(() => {});
    return turn;
  };
  return {
    async charge(ctx) {
      if (ctx.identity) return requireBudget(ctx, ctx.identity, 'read', limits.introspectionPoints);
      const bucket = `introspection ${addressBlock(ctx.address)}`;
      const refusal = attempts.refusal(bucket, 'Too many introspection queries without a key from this address.');
      if (refusal) throw refusal;
      attempts.count(bucket);
    },
    async answer({ query, operationName, isConstant }, run) {
      if (!isConstant) return inTurn(run);
      const key = `${operationName ?? ''}\n${query}`;
      const answer = answers.get(key) ?? (await inTurn(run));
      answers.delete(key);
      if (answer.isWhole) answers.set(key, answer);
      if (answers.size > ANSWERS_MAX) answers.delete(answers.keys().next().value as string);
      return answer;
    },
  };
}
