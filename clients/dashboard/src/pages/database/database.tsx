import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql } from '../../api/graphql';
import { DangerZone } from '../../parts/danger_zone';
import { Confirm } from '../../parts/dialog';
import { Facts, Section } from '../../parts/page';
import { Protection } from '../../parts/protection';
import { Ago } from '../../parts/time';
import { navigate } from '../../router';
import { DatabaseFrame, type ShownDatabase } from './frame';

const RESTART = graphql(`
  mutation RestartDatabase($id: ID!) {
    restartDatabase(id: $id) {
      id
    }
  }
`);
const UPDATE = graphql(`
  mutation UpdateDatabase($id: ID!, $input: UpdateDatabaseInput!) {
    updateDatabase(id: $id, input: $input) {
      id
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteDatabase($id: ID!) {
    deleteDatabase(id: $id)
  }
`);

export function DatabaseOverview({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} command={`svc api getDatabase ${id}`}>
      {(shown) => (
        <>
          {shown.database.status_reason && <p class="notice bad">{shown.database.status_reason}</p>}
          <Section title="Overview" actions={shown.mayChange && <Restart shown={shown} />}>
            <Facts facts={factsOf(shown)} />
          </Section>
          {shown.mayChange && <Danger shown={shown} />}
        </>
      )}
    </DatabaseFrame>
  );
}

function factsOf({ database }: ShownDatabase) {
  const { backup_schedule: backups, maintenance_window: window } = database;
  const hour = (value: number): string => `${String(value).padStart(2, '0')}:00 UTC`;
  return [
    ['Engine', `${database.engine} ${database.engine_version}`],
    ['Size', database.database_package],
    ['Storage', `${database.storage_gb} GB`],
    ['Region', database.region],
    ['Backups', backups.enabled ? `daily at ${hour(backups.hour_utc)}, kept ${backups.retention_days} days` : 'off'],
    ['Maintenance', `${window.weekday} at ${hour(window.hour_utc)}`],
    ['Deletion protection', database.deletion_protection ? 'on' : 'off'],
    ['Created', <Ago time={database.created_at} />],
  ] as const;
}

function Restart({ shown: { database, reload } }: { shown: ShownDatabase }) {
  const [asks, setAsks] = useState(false);
  if (database.status !== 'available') return null;
  const work = async (): Promise<void> => {
    await request(RESTART, { id: database.id });
    await reload();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks(true)}>
        Restart
      </button>
      {asks && (
        <Confirm title={`Restart ${database.name}?`} verb="Restart" work={work} onClose={() => setAsks(false)}>
          Open connections are closed, and new ones wait for a few seconds.
        </Confirm>
      )}
    </>
  );
}

function Danger({ shown: { database, reload } }: { shown: ShownDatabase }) {
  const { id, name, project_id, deletion_protection } = database;
  return (
    <DangerZone
      kind="database"
      name={name}
      consequence="Its data, users, endpoints, replicas and backups are deleted with it."
      isProtected={deletion_protection}
      remove={async () => {
        await request(DELETE, { id });
        navigate(`/projects/${project_id}`);
      }}
    >
      <Protection
        kind="database"
        isOn={deletion_protection}
        also="its backups"
        set={async (on) => {
          await request(UPDATE, { id, input: { deletion_protection: on } });
          await reload();
        }}
      />
    </DangerZone>
  );
}
