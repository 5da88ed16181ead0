// Relay zones: nothing of them stands outside the database. What came back of their mail is reviewed again and again,
// and at once when something does.
import { EmailRelayZone } from '../../models/email/email_relay_zone';
import { evaluateRates, ratesOf } from '../../models/email/email_relay_zone/rates';
import { gone, jittered, settled, type Job, type JobContext, type LoopRow, type Outcome } from '../job';

type ZoneRow = LoopRow & Pick<EmailRelayZone, 'enabled' | 'status' | 'suspended_at'>;

const REVIEW_MS = 10 * 60_000;

export const job: Job<ZoneRow> = {
  table: EmailRelayZone.table,
  reconcile: async (row, ctx) => (row.deleted_at ? gone : review(row, ctx)),
};

async function review(row: ZoneRow, ctx: JobContext): Promise<Outcome> {
  const now = new Date();
  const verdict = evaluateRates(row, await ratesOf(ctx.sql, row.id), now);
  const moved = verdict.status === row.status ? {} : { updated_at: now.toISOString() };
  return settled({ ...verdict, ...moved }, jittered(REVIEW_MS));
}
