// The checks of this installation's region, in the database that its workers share.
import type { SecretBox } from '../../core/secrets';
import type { ControlDatabase } from '../../db/control_database';
import { openUptime } from '../../models/observers/observer';
import { claimChecks, postponeChecks, resumeRegion, suspendRegion } from '../../models/observers/observer/claim';
import { metricValues } from '../../models/observers/observer/metric';
import { applyFindings } from '../../models/observers/observer/results';
import type { CheckStore } from './check_loop';

const RETRY_VOID_MS = 5_000;
const SUSPENDED = 'Most targets can not be reached at once: the network of the platform seems to be down.';

export function openCheckStore(database: ControlDatabase, secrets: SecretBox, region: string): CheckStore {
  return {
    async claim(limit, passOver) {
      const claimed = await claimChecks(database, region, limit, passOver);
      return claimed.map(({ id, account, fence, lag_ms, metric, uptime, sealed_headers }) => ({
        ...{ observer_id: id, region, account, fence, lag_ms, metric },
        openUptime: () => openUptime({ secrets }, { id, uptime, sealed_headers }),
      }));
    },
    metricValues: (rules) => metricValues(database, rules),
    count: (findings) => database.transaction((session) => applyFindings(session, findings)),
    postpone: (checks) => postponeChecks(database, region, checks, RETRY_VOID_MS),
    setSuspended: (isSuspended) =>
      database.transaction((session) =>
        isSuspended ? suspendRegion(session, region, SUSPENDED) : resumeRegion(session, region),
      ),
  };
}
