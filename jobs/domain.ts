// Custom domains: their records are looked for again and again, for as long as they exist.
import { Domain } from '../models/domain';
import { lookUpDns, evaluateDomain, nextCheckMs, type Checked } from '../models/domain/check';
import { ingressOf } from '../models/domain/instructions';
import { gone, settled, type Job, type JobContext, type LoopRow, type Outcome } from './job';

type DomainRow = LoopRow & Checked;

// No `states`: a domain fails for lack of its records, never because the platform could not look for them.
export const job: Job<DomainRow> = {
  table: Domain.table,
  reconcile: async (row, ctx) => (row.deleted_at ? gone : check(row, ctx)),
};

async function check(row: DomainRow, ctx: JobContext): Promise<Outcome> {
  const ingress = ingressOf(ctx.config);
  const findings = await lookUpDns(ctx.probes.dns, row, ingress);
  if (!findings) ctx.log.warn('the DNS gave no answer about a custom domain');
  const now = new Date();
  const verdict = evaluateDomain(row, findings, ingress, now);
  const moved = verdict.status === row.status ? {} : { updated_at: now.toISOString() };
  return settled({ ...verdict, ...moved }, nextCheckMs({ ...verdict, created_at: row.created_at }, now));
}
