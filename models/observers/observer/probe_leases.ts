// Leases of checks to probes. When a probe dies, its checks wait until their leases end; a result counts once, and only
// while the probe holds the lease.
import type { Sql } from '../../../core/context';
import type { CheckReport, ChecksRequest, Lease, ResultsAnswer } from '../../../core/outbound/probe_protocol';
import type { Turns } from '../../../core/accounts/turns';
import { named } from '../../../db/statement';
import { noteProbe, type Probe } from '../probe';
import { claimChecksForProbe, postponeChecks, resumeRegion, suspendRegion, type ClaimedCheck } from './claim';
import { noteReturn } from './region_watch';
import { applyFindings } from './results';

/** How long a check waits that a probe could not make. */
const RETRY_VOID_MS = 5_000;
const IS_SUSPENDED = named(`select coalesce(bool_and(suspended), false) as suspended from probes
  where region = $1 and revoked_at is null and seen_at > now() - make_interval(secs => $2)`);
const SUSPENDED = 'The network of the probes in this region seems to be down.';

/**
 * Checks for a probe, which is there from now on. In a transaction.
 * @param lostSeconds after which a silent region does not count
 */
export async function leaseChecks(
  sql: Sql,
  probe: Probe,
  request: ChecksRequest,
  { lostSeconds, turns }: { lostSeconds: number; turns: Turns },
): Promise<ClaimedCheck[]> {
  await noteProbe(sql, probe, request);
  await noteReturn(sql, probe.region);
  // While another probe of the region reaches its targets, the region works.
  const [row] = await sql.query<{ suspended: boolean }>(IS_SUSPENDED, [probe.region, lostSeconds]);
  if (row?.suspended) await suspendRegion(sql, probe.region, SUSPENDED);
  else await resumeRegion(sql, probe.region);
  return request.limit ? claimChecksForProbe(sql, probe, request, turns) : [];
}

interface LeaseRow {
  observer_id: string;
  fence: number;
  counted_fence: number;
  is_ours: boolean;
  is_over: boolean;
  claimed_at: string | null;
}

// Not locked: who holds a lease changes only with its fence, which is looked at again when the findings are applied.
const LEASES = named(`select observer_id, fence, counted_fence, coalesce(probe_id = $2, false) as is_ours,
    check_at <= now() as is_over, claimed_at
  from observer_checks where region = $1 and observer_id = any($3)`);

const NOT_LEASED = 'The check is not leased to this probe.';

export type NumberedReport = CheckReport & Lease & { index: number };

/** Counts what a probe has found. In a transaction. */
export async function countReports(sql: Sql, probe: Probe, reports: readonly NumberedReport[]): Promise<ResultsAnswer> {
  const answer: ResultsAnswer = { counted: 0, repeated: 0, expired: 0, rejected: [] };
  const ids = [...new Set(reports.map(({ observer_id }) => observer_id))];
  const rows = await sql.query<LeaseRow>(LEASES, [probe.region, probe.id, ids]);
  const leases = new Map(rows.map((row) => [row.observer_id, row]));
  const owed: NumberedReport[] = [];
  for (const report of reports) {
    const lease = leases.get(report.observer_id);
    if (!lease || lease.fence < report.fence || (lease.fence === report.fence && !lease.is_ours))
      answer.rejected.push({ index: report.index, detail: NOT_LEASED });
    else if (lease.fence === report.fence && lease.counted_fence >= report.fence) answer.repeated += 1;
    else if (lease.fence > report.fence || lease.is_over) answer.expired += 1;
    else {
      owed.push(report);
      // The same one a second time in this batch.
      lease.counted_fence = report.fence;
    }
  }
  await count(sql, probe, owed, leases, answer);
  return answer;
}

async function count(
  sql: Sql,
  { region }: Probe,
  owed: readonly NumberedReport[],
  leases: ReadonlyMap<string, LeaseRow>,
  answer: ResultsAnswer,
): Promise<void> {
  const now = Date.now();
  const findings = owed.flatMap(({ observer_id, fence, age_ms, outcome }) => {
    if (!outcome) return [];
    const claimedAt = Date.parse(leases.get(observer_id)?.claimed_at ?? '') || now;
    return { observer_id, region, fence, checked_at: new Date(Math.max(claimedAt, now - age_ms)), outcome };
  });
  const voided = owed.filter(({ outcome }) => !outcome);
  if (voided.length) await postponeChecks(sql, region, voided, RETRY_VOID_MS);
  const results = findings.length ? await applyFindings(sql, findings) : [];
  answer.counted = results.length + voided.length;
  answer.expired += findings.length - results.length;
}
