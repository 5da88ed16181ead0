// Limits per address for queries without a key: new query texts, which have to be parsed and validated, and fields.
import { createHash } from 'node:crypto';
import type { Context } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { addressBlock } from '../../core/protocols/addresses';
import type { Platform } from '../platform/platform';
import { memoryLimiter } from '../../rest/rate_limit';

export interface AnonymousLimits {
  /** Counts a text, before it is read. @throws rate_limited */
  chargeText(ctx: Context, query: string): void;
  /** Counts the root fields of a text that is within the limits. @throws rate_limited */
  chargeFields(ctx: Context, count: number): Promise<void>;
  /** Marks a text as valid: repeating it costs little. */
  remember(query: string): void;
}

/** More than the texts of all pages and tools. */
const TEXTS_MAX = 1_000;

export function openAnonymousLimits({ attempts, config }: Platform): AnonymousLimits {
  const known = new Set<string>();
  // In memory, whatever the store of rate limits: rows of addresses would be a way to fill it.
  const fields = memoryLimiter({ read: config.rateLimitRead, write: 0, deploy: 0 });
  return {
    chargeText({ address }, query) {
      if (known.has(digest(query))) return;
      const bucket = `documents ${addressBlock(address)}`;
      const refusal = attempts.refusal(bucket, 'Too many different queries without a key from this address.');
      if (refusal) throw refusal;
      attempts.count(bucket);
    },
    async chargeFields({ address }, count) {
      const { allowed, reset_seconds } = await fields.take(addressBlock(address), 'read', count);
      if (allowed) return;
      const detail = `More than ${config.rateLimitRead} fields a minute without a key from this address.`;
      throw problem('rate_limited', detail, {}, { 'Retry-After': String(reset_seconds) });
    },
    remember(query) {
      const name = digest(query);
      known.delete(name);
      known.add(name);
      if (known.size > TEXTS_MAX) known.delete(known.values().next().value as string);
    },
  };
}

/** Tokens that a query of a caller may have. */
export function tokensMax({ identity }: Context): number {
  return identity ? limits.graphqlTokensMax : limits.graphqlStrangerTokensMax;
}

function digest(query: string): string {
  return createHash('sha256').update(query).digest('base64');
}
