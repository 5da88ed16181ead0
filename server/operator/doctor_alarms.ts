// The alarms of the installation that last.
import type { Config } from '../../core/config';
import { alarmsEvaluatedAt, currentAlarms } from '../../models/observers/installation_alarm';
import { isMade, withDatabase } from './doctor_database';
import type { Finding } from './finding';

const CHECK = 'alarms';

export async function alarms(config: Config): Promise<Finding[]> {
  if (!isMade(config)) return [];
  return withDatabase(config, async (database) => {
    const current = await currentAlarms(database);
    if (current.length)
      return current.map(({ title, detail, begun_at }) => ({
        ...{ check: CHECK, status: 'warning' },
        detail: `${title}, since ${begun_at}. ${detail}`,
      }));
    const at = await alarmsEvaluatedAt(database);
    const detail = at === null ? 'not evaluated yet: a running service does it' : `none, as evaluated at ${at}`;
    return [{ check: CHECK, status: 'ok', detail }];
  });
}
