// Sending domains: their records are looked for again and again, for as long as they exist.
import { EmailDomain, rotatedColumns } from '../../models/email/email_domain';
import {
  evaluateEmailDomain,
  lookUpEmailRecords,
  nextEmailCheckMs,
  rotatedRecords,
  type CheckedDomain,
} from '../../models/email/email_domain/check';
import { mailHostOf } from '../../models/email/email_domain/instructions';
import { ensureEmailRecords, withEmailZone } from '../../models/email/email_domain/records';
import { removeManagedRecords } from '../../models/dns/dns_record/managed';
import { isVerifiedElsewhere } from '../../models/email/email_domain/job_queries';
import { gone, settled, type Job, type JobContext, type LoopRow, type Outcome } from '../job';

type DomainRow = LoopRow & CheckedDomain & Pick<EmailDomain, 'project_id' | 'dns' | 'dkim_keys' | 'dkim_selector'>;

// No `states`: a domain fails for lack of its records, never because the platform could not look for them.
export const job: Job<DomainRow> = {
  table: EmailDomain.table,
  park: async (row, ctx) => {
    await removeRecords(row, ctx);
    return settled();
  },
  reconcile: (row, ctx) => (row.deleted_at ? tearDown(row, ctx) : check(row, ctx)),
};

async function tearDown(row: DomainRow, ctx: JobContext): Promise<Outcome> {
  await removeRecords(row, ctx);
  return gone;
}

async function removeRecords({ id }: DomainRow, ctx: JobContext): Promise<void> {
  await ctx.sql.transaction((sql) => removeManagedRecords(sql, { type: EmailDomain.kind, id }));
}

async function check(row: DomainRow, ctx: JobContext): Promise<Outcome> {
  const mail = mailHostOf(ctx.config);
  const zone = await ctx.sql.transaction((sql) => ensureEmailRecords(sql, row, mail));
  // If the platform is authoritative for the names, no lookup is needed.
  const found = zone?.isServed ? null : await lookUpEmailRecords(ctx.probes.dns, row);
  const findings = withEmailZone(found, zone, row, mail);
  if (!findings) ctx.log.warn('the DNS gave no answer about a sending domain');
  const now = new Date();
  let verdict = evaluateEmailDomain(row, findings, mail, now);
  const moves = verdict.status !== row.status;
  if (moves && verdict.status === 'verified' && (await isVerifiedElsewhere(ctx.sql, row)))
    verdict = { ...verdict, status: row.status, status_reason: 'The domain is verified in another project.' };
  const moved = verdict.status === row.status ? {} : { updated_at: now.toISOString() };
  const keys = rotatedRecords(row.dkim_records, findings) ? rotatedColumns(ctx, row, findings) : {};
  return settled({ ...verdict, ...moved, ...keys }, nextEmailCheckMs({ ...row, ...verdict }, now));
}
