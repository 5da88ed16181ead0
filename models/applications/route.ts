// Routes of the ingress: host names to running instances.
import type { Sql } from '../../core/context';
import type { Application } from './application';
import { settingsOf } from './application_settings';
import type { ReleaseSettings } from './release_settings';
import { named } from '../../db/statement';

/** As in engines/ingress/ingress.ts. */
interface RouteEntry {
  application_id: string;
  preview_id: string | null;
  hosts: string[];
  targets: { instance_id: string; port: number; location?: { address: string }; pod_uid?: string }[];
  state: 'new' | 'running' | 'stopped' | 'crashed';
  maintenance: boolean;
  force_https: boolean;
  request_timeout_ms: number;
  sticky: boolean;
  workloads: string[];
}

interface RouteRow extends Pick<Application, 'id' | 'status' | 'settings'> {
  preview_id: string | null;
  hosts: string[];
  deployed: boolean;
  targets: RouteEntry['targets'] | null;
  workloads: string[] | null;
  http: ReleaseSettings['http'] | null;
}

const TARGETS = `select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
    'instance_id', i.id, 'port', i.port, 'location', i.location, 'pod_uid', i.pod_uid)) order by i.id)
  from instances i
  where i.application_id = a.id and i.process_type = 'web' and i.status = 'running' and i.port is not null
    and i.deleted_at is null`;

/** None where the worker has not said yet which objects of the cluster are those of this installation. */
const WORKLOADS = `select jsonb_agg(concat_ws('/', f.value #>> '{}', w.project_id, w.id) order by w.id)
  from workloads w join cluster_facts f on f.name = 'prefix'
  where w.application_id = a.id and w.process_type = 'web' and w.deleted_at is null`;

const FIND =
  named(`select a.id, null as preview_id, a.status, a.settings, a.current_deployment_id is not null as deployed,
    r.settings -> 'http' as http,
    array[a.default_hostname] || array(select d.hostname from domains d
      where d.application_id = a.id and d.status = 'active' and d.deleted_at is null order by d.hostname) as hosts,
    (${TARGETS} and i.preview_id is null and i.deployment_id = a.current_deployment_id) as targets,
    (${WORKLOADS} and w.preview_id is null and w.deployment_id = a.current_deployment_id) as workloads
  from applications a left join processes p on p.application_id = a.id and p.type = 'web'
    left join releases r on r.id = p.release_id
  where a.deleted_at is null and ($1::text is null or a.id = $1)
  union all
  select a.id, v.id, v.status, a.settings, v.current_deployment_id is not null, r.settings -> 'http',
    array[v.hostname],
    (${TARGETS} and i.preview_id = v.id and i.deployment_id = v.current_deployment_id),
    (${WORKLOADS} and w.preview_id = v.id and w.deployment_id = v.current_deployment_id)
  from previews v join applications a on a.id = v.application_id left join releases r on r.id = v.release_id
  where v.deleted_at is null and a.deleted_at is null and ($1::text is null or a.id = $1)`);

/** Routes of one application and its previews, or of all with null. An application that has gone has none. */
export async function loadRoutes(sql: Sql, applicationId: string | null): Promise<RouteEntry[]> {
  return (await sql.query<RouteRow>(FIND, [applicationId])).map(routeOf);
}

function routeOf(found: RouteRow): RouteEntry {
  const { id, preview_id, hosts, settings } = found;
  const now = settingsOf({ id, settings } as Application);
  // As it was released; maintenance acts at once.
  const http = found.http ?? now.http;
  return {
    application_id: id,
    preview_id,
    hosts,
    targets: found.targets ?? [],
    workloads: found.workloads ?? [],
    state: stateOf(found),
    maintenance: preview_id === null && now.maintenance_mode,
    force_https: http.force_https,
    request_timeout_ms: http.request_timeout_seconds * 1000,
    sticky: http.sticky_sessions,
  };
}

function stateOf({ status, deployed }: RouteRow): RouteEntry['state'] {
  if (!deployed) return 'new';
  if (status === 'stopping' || status === 'stopped') return 'stopped';
  return status === 'crashed' ? 'crashed' : 'running';
}
