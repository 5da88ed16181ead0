// Variables that are set and that what runs has not: it keeps those of its release.
import type { Context } from '../../core/context';
import { named } from '../../db/statement';
import { variablesOf } from '../environment/environment_variable';
import { variablesOfRelease } from './release';

const IN_SERVICE = named(`select distinct r.id, r.variables, coalesce(d.plan -> 'env', '{}') as planned
  from processes p join releases r on r.id = p.release_id join deployments d on d.id = r.deployment_id
  where p.application_id = $1`);

interface InService {
  id: string;
  /** Sealed. */
  variables: string;
  planned: Record<string, string>;
}

/** Names, sorted: of those that a restart would add, change or remove. Empty where nothing is in service. */
export async function pendingVariables(
  { sql, secrets }: Pick<Context, 'sql' | 'secrets'>,
  applicationId: string,
): Promise<string[]> {
  const releases = await sql.query<InService>(IN_SERVICE, [applicationId]);
  if (!releases.length) return [];
  const own = await variablesOf(sql, secrets, applicationId, 'runtime');
  const pending = releases.flatMap((release) => {
    const [before, after] = [variablesOfRelease(secrets, release), { ...release.planned, ...own }];
    return Object.keys({ ...before, ...after }).filter((key) => before[key] !== after[key]);
  });
  return [...new Set(pending)].sort();
}
