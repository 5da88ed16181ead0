// `Dry-Run: true`: a write runs completely, with all its checks, and is rolled back. A request touches nothing but rows
// of one transaction, so nothing is left of it (docs/decisions/rules.md §49).
import type { Context } from '../core/context';
import { problem } from '../core/errors';
import type { RootField } from './operations';

/** Whether a write is to be rolled back. Echoes the header. @throws malformed_request, dry_run_unsupported */
export function readDryRun({ dry_run_header: header, reply }: Context, { errors }: RootField): boolean {
  if (header === undefined || header === 'false') return false;
  if (header !== 'true') throw problem('malformed_request', 'Dry-Run must be true or false.');
  if (errors.includes('dry_run_unsupported')) throw problem('dry_run_unsupported');
  reply.headers['Dry-Run'] = 'true';
  return true;
}

/** Ends the transaction of a dry run. */
class Rehearsed extends Error {
  constructor(readonly result: unknown) {
    super('the transaction of a dry run');
  }
}

/** The result of a write that is rolled back. @throws what the write throws */
export async function rehearse<Result>(ctx: Context, run: (inner: Context) => Promise<Result>): Promise<Result> {
  try {
    return await ctx.transact(async (inner) => {
      const result = await run(inner);
      // Checks the deferred constraints, as a commit would; also waits for all statements that were sent before.
      await inner.sql.query(CHECK_CONSTRAINTS, []);
      throw new Rehearsed(result);
    });
  } catch (error) {
    if (!(error instanceof Rehearsed)) throw error;
    // A cookie would lead to a session that is not there.
    delete ctx.reply.headers['Set-Cookie'];
    return error.result as Result;
  }
}

const CHECK_CONSTRAINTS = { name: 'check_constraints', text: 'set constraints all immediate' };
