import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useQuery } from '../../api/use_query';
import { pageProject } from '../../keyboard';
import { isMissing, Page, Waiting, type Tab } from '../../parts/page';
import { isUnsettled, Status } from '../../parts/status';
import { mayActAs } from '../../session';
import { projectFlag, quote } from '../../parts/command';

const DATABASE = graphql(`
  query Database($id: ID!) {
    getDatabase(id: $id) {
      id
      project_id
      name
      engine
      engine_version
      database_package
      storage_gb
      storage_used_bytes
      region
      nodes
      database_name
      username
      backup_schedule {
        enabled
        hour_utc
        retention_days
      }
      maintenance_window {
        weekday
        hour_utc
      }
      deletion_protection
      recovery_seconds
      point_in_time_window {
        earliest
        latest
      }
      restore_from {
        database_id
        point_in_time
      }
      status
      status_reason
      created_at
    }
  }
`);

export type DatabaseData = ResultOf<typeof DATABASE>['getDatabase'];

export interface ShownDatabase {
  database: DatabaseData;
  mayChange: boolean;
  reload(): Promise<void>;
}

interface FrameProps {
  id: string;
  section?: string;
  /** Command of `svc` that shows the same; a function gets the name of the database and its project. */
  command: string | ((database: string) => string);
  children(shown: ShownDatabase): ComponentChildren;
}

export function DatabaseFrame({ id, section, command, children }: FrameProps) {
  const { data, error, reload } = useQuery(DATABASE, { id });
  const database = data?.getDatabase;
  useMoving(isUnsettled(database?.status), reload);
  useEffect(() => void (pageProject.value = database?.project_id), [database?.project_id]);
  return (
    <Page
      title={database?.name ?? 'Database'}
      beside={database && <Status value={database.status} title={database.status_reason} />}
      trail={database ? [{ href: `/projects/${database.project_id}/databases`, label: 'Databases' }] : []}
      tabs={isMissing(error) ? [] : databaseSections(id, database?.engine)}
      projectId={database?.project_id}
      command={typeof command === 'function' ? database && command(commandName(database)) : command}
    >
      {section && <h2 class="off-screen">{section}</h2>}
      {database ? (
        children({ database, mayChange: mayActAs('developer', database.project_id), reload })
      ) : (
        <Waiting error={error} rows={6} />
      )}
    </Page>
  );
}

/** Its name, as `svc db` takes it, with the project. */
export function commandName({ name, project_id }: DatabaseData): string {
  return quote(name) + projectFlag(project_id);
}

export function databaseSections(id: string, engine?: string): Tab[] {
  const labels = ['Overview', 'Connect', 'Users', 'Metrics', 'Backups', 'Restore', 'Import'];
  return [...labels, ...(engine === 'postgresql' ? ['Extensions'] : [])].map((label) => ({
    label,
    href: `/databases/${id}${label === 'Overview' ? '' : `/${label.toLowerCase()}`}`,
  }));
}
