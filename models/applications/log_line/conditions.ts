// Log filters as SQL. Enum values are literals in the text, so that the planner finds partial indexes.
import { isId, timeOfId } from '../../../core/ids';
import type { DatabaseLogSource, LogLevel, LogSource, LogStep } from '../../../core/log/log_line';

/** Whose log it is, found and allowed before. */
export type LogScope = LogOwner & {
  /**
   * `resource_id`: lines of the application, preview, run or database server, without those of deployments.
   * `deployment_id`: lines of one deployment.
   */
  column: 'resource_id' | 'deployment_id';
  id: string;
  /** Of a deployment: lines of one step. */
  step?: LogStep;
  /** Days that its lines are kept. */
  retention_days: number;
};

/** Lines of a preview belong to this application, lines of a replica to the project of its database. */
type LogOwner = { application_id: string } | { project_id: string };

/** Filters shared by REST and GraphQL; all ANDed. */
export interface LogFilters {
  since?: string | null;
  until?: string | null;
  /** Substring of the message, upper and lower case alike. */
  search?: string | null;
  level?: LogLevel | null;
  source?: LogSource | DatabaseLogSource | null;
  process_type?: string | null;
  instance_id?: string | null;
  deployment_id?: string | null;
}

const DAY_MS = 24 * 3600 * 1000;
const CLOCKS_MS = 3600 * 1000;

/** The conditions as texts; their parameters are pushed to `values`. Null: no line can pass. */
export function conditionsOf(scope: LogScope, filters: LogFilters, values: unknown[]): string[] | null {
  const { instance_id, deployment_id } = filters;
  if ((instance_id != null && !isId('ins', instance_id)) || (deployment_id != null && !isId('dep', deployment_id)))
    return null;
  // A well-formed id can have a time in the far future, which PostgreSQL could not even read.
  const soon = Date.now() + CLOCKS_MS;
  if ([instance_id, deployment_id].some((id) => id != null && timeOfId(id).getTime() > soon)) return null;
  const param = (value: unknown): string => `$${values.push(value)}`;
  const found = [
    `${scope.column} = ${param(scope.id)}`,
    scope.step ? `step = '${scope.step}'` : scope.column === 'deployment_id' ? 'step is not null' : 'step is null',
    'application_id' in scope
      ? `application_id = ${param(scope.application_id)}`
      : `project_id = ${param(scope.project_id)}`,
    `at >= ${param(earliest(scope, filters))}`,
  ];
  if (filters.until != null) found.push(`at < ${param(filters.until)}`);
  for (const name of ['level', 'source'] as const)
    if (filters[name] != null) found.push(`${name} = '${filters[name]}'`);
  for (const name of ['process_type', 'instance_id', 'deployment_id'] as const)
    if (filters[name] != null) found.push(`${name} = ${param(filters[name])}`);
  if (filters.search) found.push(`message ilike ${param(`%${filters.search.replace(/[\\%_]/g, '\\$&')}%`)}`);
  return found;
}

/** No line of an instance or a deployment is older than its id, but for clocks that differ. */
function earliest(
  { retention_days }: Pick<LogScope, 'retention_days'>,
  { since, instance_id, deployment_id }: LogFilters,
): string {
  const times = [
    Date.now() - retention_days * DAY_MS,
    since != null ? Date.parse(since) : 0,
    ...[instance_id, deployment_id].map((id) => (id != null ? timeOfId(id).getTime() - CLOCKS_MS : 0)),
  ];
  return new Date(Math.max(...times)).toISOString();
}
