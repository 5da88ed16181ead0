// The release that a command runs in: the one in service, as its process types have it.
import type { Sql } from '../../../core/context';
import { problem } from '../../../core/errors';
import { named } from '../../../db/statement';

export interface ReleaseOfRun {
  id: string;
  deployment_id: string;
  process_type: string;
  /** Of the process type. */
  application_type: string;
}

interface FoundRelease {
  id: string;
  deployment_id: string;
  process_types: string[];
}

const KEYS = `(select coalesce(array_agg(key order by key), '{}') from jsonb_object_keys(r.processes) key)`;
// A restart of one process type gives it a later release than the others have.
const OF_APPLICATION = named(`select r.id, r.deployment_id, ${KEYS} as process_types
  from processes p join releases r on r.id = p.release_id where p.application_id = $1
  order by p.type = coalesce($2, 'web') desc, r.id desc limit 1`);
const OF_PREVIEW = named(`select r.id, r.deployment_id, ${KEYS} as process_types
  from previews v join releases r on r.id = v.release_id where v.id = $1`);
const SIZE = named(`select coalesce(p.application_type, a.application_type) as application_type
  from applications a left join processes p on p.application_id = a.id and p.type = $2 where a.id = $1`);
const DEFAULT_TYPE = 'web';

/**
 * @param wanted name of a process type; null: `web`, or the first of a release without it
 * @throws invalid_state without a release in service; reference_not_found for a process type that the release lacks
 */
export async function requireRelease(
  sql: Sql,
  application: { id: string; status: string },
  preview: { id: string; status: string } | null,
  wanted: string | null,
): Promise<ReleaseOfRun> {
  const [found] =
    preview === null
      ? await sql.query<FoundRelease>(OF_APPLICATION, [application.id, wanted])
      : await sql.query<FoundRelease>(OF_PREVIEW, [preview.id]);
  if (!found) throw withoutRelease(preview === null ? application.status : preview.status, preview !== null);
  const { process_types, ...release } = found;
  const process_type = wanted ?? (process_types.includes(DEFAULT_TYPE) ? DEFAULT_TYPE : process_types[0]);
  if (wanted !== null && !process_types.includes(wanted))
    throw problem('reference_not_found', `The release in service has no process type ${wanted}.`, {
      field: 'process_type',
    });
  const [size] = await sql.query<{ application_type: string }>(SIZE, [application.id, process_type ?? DEFAULT_TYPE]);
  return {
    ...release,
    process_type: process_type ?? DEFAULT_TYPE,
    application_type: size?.application_type as string,
  };
}

/** The release that an instance runs, with the size of its process type. */
export async function releaseOfInstance(
  sql: Sql,
  instance: { application_id: string; release_id: string; deployment_id: string; process_type: string },
): Promise<ReleaseOfRun> {
  const { application_id, release_id: id, deployment_id, process_type } = instance;
  const [size] = await sql.query<{ application_type: string }>(SIZE, [application_id, process_type]);
  return { id, deployment_id, process_type, application_type: size?.application_type as string };
}

function withoutRelease(resource_status: string, isPreview: boolean): Error {
  const [subject, allowed_statuses] = isPreview
    ? ['The preview', ['running']]
    : ['The application', ['running', 'starting', 'restarting', 'stopping', 'stopped', 'crashed']];
  return problem('invalid_state', `${subject as string} has no release in service. Deploy it first.`, {
    resource_status,
    allowed_statuses: allowed_statuses as string[],
  });
}
