// Custom domains: their records are looked for again and again, for as long as they exist.
import { Domain, isTaken } from '../../models/domains/domain';
import { probeDns, evaluateDomain, nextCheckMs, type Checked } from '../../models/domains/domain/check';
import { ingressOf } from '../../models/domains/domain/instructions';
import { ensureDomainRecords, removeDomainRecords, withZone } from '../../models/domains/domain/records';
import { gone, settled, type Job, type JobContext, type LoopRow, type Outcome } from '../job';

type DomainRow = LoopRow & Checked & Pick<Domain, 'project_id' | 'dns' | 'target_host'>;

// No `states`: a domain fails for lack of its records, never because the platform could not look for them.
export const job: Job<DomainRow> = {
  table: Domain.table,
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : check(row, ctx)),
};

async function tearDown(row: DomainRow, ctx: JobContext): Promise<Outcome> {
  await ctx.sql.transaction((sql) => removeDomainRecords(sql, row));
  return gone;
}

async function check(row: DomainRow, ctx: JobContext): Promise<Outcome> {
  const ingress = ingressOf(ctx.config, row);
  const zone = await ctx.sql.transaction((sql) => ensureDomainRecords(sql, row, ingress));
  // If the platform is authoritative for the name, no lookup is needed.
  const found = zone?.isServed ? null : await probeDns(ctx.probes.dns, row, ingress);
  if (!found && !zone?.isServed) ctx.log.warn('the DNS gave no answer about a custom domain');
  const now = new Date();
  const findings = zone && (found || zone.isServed) ? withZone(found, zone) : found;
  const verdict = evaluateDomain(row, findings, ingress, now, await isTaken(ctx.sql, row));
  const moved = verdict.status === row.status ? {} : { updated_at: now.toISOString() };
  return settled({ ...verdict, ...moved }, nextCheckMs({ ...verdict, created_at: row.created_at }, now));
}
