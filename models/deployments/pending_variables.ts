// Variables that are set and that what runs has not: it keeps those of its release.
import type { Context } from '../../core/context';
import { groupBy } from '../../core/group_by';
import { named } from '../../db/statement';
import { loaderOf } from '../base/load';
import { variablesOfEach } from '../environment/environment_variable';
import { variablesOfRelease } from './release';

const IN_SERVICE =
  named(`select distinct p.application_id, r.id, r.variables, coalesce(d.plan -> 'env', '{}') as planned
  from processes p join releases r on r.id = p.release_id join deployments d on d.id = r.deployment_id
  where p.application_id = any($1)`);

interface InService {
  application_id: string;
  id: string;
  /** Sealed. */
  variables: string;
  planned: Record<string, string>;
}

/** Names, sorted: of those that a restart would add, change or remove. Empty where nothing is in service. */
export function pendingVariables(ctx: Context, applicationId: string): Promise<string[]> {
  return loaderOf(ctx, 'pending_variables', (ids: readonly string[]) => loadPending(ctx, ids)).load(applicationId);
}

async function loadPending(
  { sql, secrets }: Pick<Context, 'sql' | 'secrets'>,
  ids: readonly string[],
): Promise<string[][]> {
  const releases = groupBy(await sql.query<InService>(IN_SERVICE, [ids]), (one) => one.application_id);
  const own = releases.size ? await variablesOfEach(sql, secrets, [...releases.keys()], 'runtime') : new Map();
  return ids.map((id) => {
    const pending = (releases.get(id) ?? []).flatMap((release) => {
      const [before, after] = [variablesOfRelease(secrets, release), { ...release.planned, ...own.get(id) }];
      return Object.keys({ ...before, ...after }).filter((key) => before[key] !== after[key]);
    });
    return [...new Set(pending)].sort();
  });
}
