// Relay zones: nothing of them stands outside the database. Their rates are reviewed again and again.
import { EmailRelayZone } from '../models/email_relay_zone';
import { gone, jittered, settled, type Job, type LoopRow } from './job';

const REVIEW_MS = 10 * 60_000;

export const job: Job<LoopRow> = {
  table: EmailRelayZone.table,
  reconcile: async (row) => (row.deleted_at ? gone : settled({}, jittered(REVIEW_MS))),
};
