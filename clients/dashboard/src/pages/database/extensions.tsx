// The extensions of a PostgreSQL database: what its server can have, and what is in the database.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useMoving } from '../../api/use_moving';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Problem } from '../../parts/form';
import { Section, Table, Waiting } from '../../parts/page';
import { isUnsettled, Status } from '../../parts/status';
import { DatabaseFrame, type ShownDatabase } from './frame';

const EXTENSIONS = graphql(`
  query DatabaseExtensions($id: ID!) {
    listDatabaseExtensions(id: $id, limit: 100) {
      data {
        name
        version
        installed_version
        description
        status
        status_reason
      }
    }
  }
`);
const ENABLE = graphql(`
  mutation EnableDatabaseExtension($id: ID!, $name: String!) {
    enableDatabaseExtension(id: $id, name: $name) {
      status
    }
  }
`);
const DISABLE = graphql(`
  mutation DisableDatabaseExtension($id: ID!, $name: String!) {
    disableDatabaseExtension(id: $id, name: $name) {
      status
    }
  }
`);

type Extension = ResultOf<typeof EXTENSIONS>['listDatabaseExtensions']['data'][number];

export function Extensions({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} section="Extensions" command={(name) => `svc db extensions ${name}`}>
      {(shown) => <List shown={shown} />}
    </DatabaseFrame>
  );
}

function List({ shown }: { shown: ShownDatabase }) {
  const { id } = shown.database;
  const { data, error, reload } = useQuery(EXTENSIONS, { id });
  const list = data?.listDatabaseExtensions.data;
  useMoving(list?.some(({ status }) => isUnsettled(status)) ?? false, reload);
  if (!list) return <Waiting error={error} />;
  const isEnabled = ({ status }: Extension): boolean => status !== 'available' && status !== 'refused';
  const groups = [
    { title: 'Enabled', rows: list.filter(isEnabled) },
    { title: 'Available', rows: list.filter(({ status }) => status === 'available') },
    { title: 'Refused', rows: list.filter(({ status }) => status === 'refused') },
  ];
  return groups.map(
    ({ title, rows }) =>
      rows.length > 0 && (
        <Section key={title} title={title}>
          <Table label={title} head={['Name', 'Version', 'State', '']}>
            {rows.map((one) => (
              <tr key={one.name}>
                <th scope="row">
                  <span>{one.name}</span>
                  <small class="reason">{one.status_reason ?? one.description}</small>
                </th>
                <td>{one.installed_version ?? one.version}</td>
                <td>
                  <Status value={one.status} />
                </td>
                <td>{shown.mayChange && <Actions id={id} extension={one} reload={reload} />}</td>
              </tr>
            ))}
          </Table>
        </Section>
      ),
  );
}

interface ActionsProps {
  id: string;
  extension: Extension;
  reload(): Promise<void>;
}

function Actions({ id, extension: { name, status }, reload }: ActionsProps) {
  const [asks, setAsks] = useState(false);
  const enable = useAction(async () => {
    await request(ENABLE, { id, name });
    await reload();
  });
  const disable = async (): Promise<void> => {
    await request(DISABLE, { id, name });
    await reload();
  };
  if (status === 'refused' || isUnsettled(status)) return null;
  return (
    <>
      {status !== 'enabled' && (
        <button type="button" class="quiet small" onClick={() => void enable.run()} disabled={enable.isRunning}>
          Enable<span class="off-screen"> {name}</span>
        </button>
      )}
      {status === 'enabled' && (
        <button type="button" class="quiet small" onClick={() => setAsks(true)}>
          Disable<span class="off-screen"> {name}</span>
        </button>
      )}
      <Problem error={enable.error} />
      {asks && (
        <Confirm title={`Disable ${name}?`} verb="Disable" work={disable} onClose={() => setAsks(false)}>
          It is dropped from the database. It stays where tables, functions or others need it, and the reason names
          them.
        </Confirm>
      )}
    </>
  );
}
