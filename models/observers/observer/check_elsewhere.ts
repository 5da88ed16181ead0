// A requested check of a target that only remote probes check: one of them runs it, and its result counts like any
// other of its region.
import { setTimeout as sleep } from 'node:timers/promises';
import { CHECK_NOW_SECONDS_MAX } from '../../../core/protocols/checks';
import type { Context } from '../../../core/context';
import { problem } from '../../../core/errors';
import { firstIdAt } from '../../../core/ids';
import { named } from '../../../db/statement';
import type { CheckResult } from '../../../schema/types';

const LOOK_MS = 200;
// One that is under way will do.
const NOW = named(`update observer_checks set check_at = now()
  where observer_id = $1 and region = $2 and counted_fence = fence`);
const ANSWERING = named(`select c.region from observer_checks c left join monitored_regions r on r.region = c.region
  where c.observer_id = $1 order by r.lost_at is not null, c.region limit 1`);
const RESULT = named(`select id, observer_id, checked_at, status, region, response_time_ms, status_code, value, error,
    incident_id, timings, certificate_expires_at
  from check_results where observer_id = $1 and region = $2 and id > $3 and checked_at > now() - interval '1 hour'
  order by id limit 1`);

/** The result. @throws provider_error where no probe answers in time */
export async function checkElsewhere(ctx: Context, observerId: string): Promise<CheckResult> {
  const [row] = await ctx.sql.query<{ region: string }>(ANSWERING, [observerId]);
  const region = row?.region ?? '';
  const after = firstIdAt('chk', new Date().toISOString());
  await ctx.transact((inner) => inner.sql.query(NOW, [observerId, region]));
  const seconds = Math.min(CHECK_NOW_SECONDS_MAX, ctx.config.operationWaitSeconds);
  for (const end = Date.now() + seconds * 1000; ; await sleep(LOOK_MS)) {
    const [result] = await ctx.sql.query<CheckResult>(RESULT, [observerId, region, after]);
    if (result) return result;
    if (Date.now() >= end || ctx.signal.aborted)
      throw problem('provider_error', `No probe of the region ${region} has answered within ${seconds} seconds.`);
  }
}
