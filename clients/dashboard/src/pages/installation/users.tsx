// The users of the installation: who they are, when they were there, and their sessions, which an operator may end.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useQuery } from '../../api/use_query';
import { browserText } from '../../parts/browser_name';
import { Confirm, Dialog } from '../../parts/dialog';
import { Waiting } from '../../parts/page';
import { Paging } from '../../parts/paging';
import { Status } from '../../parts/status';
import { RowsTable } from '../../parts/table';
import { Ago } from '../../parts/time';
import { OperatorPage } from './frame';
import { SearchField } from './search';

const USERS = graphql(`
  query InstallationUsers($search: String, $cursor: String) {
    listInstallationUsers(search: $search, limit: 50, cursor: $cursor) {
      data {
        id
        name
        email
        account_status
        is_operator
        email_confirmed
        two_factor_enabled
        last_seen_at
        sessions
        keys
        projects
        created_at
      }
      next_cursor
    }
  }
`);
const SESSIONS = graphql(`
  query UserSessions($id: ID!) {
    listUserSessions(user_id: $id, limit: 50) {
      data {
        id
        address
        user_agent
        current
        created_at
        last_seen_at
      }
    }
  }
`);
const END = graphql(`
  mutation EndUserSessions($id: ID!) {
    endUserSessions(user_id: $id) {
      count
    }
  }
`);

type User = ResultOf<typeof USERS>['listInstallationUsers']['data'][number];
type Session = ResultOf<typeof SESSIONS>['listUserSessions']['data'][number];

export function UsersPage() {
  const [search, setSearch] = useState('');
  return (
    <OperatorPage title="Users">
      <p class="faint">
        Who is an operator is decided on the machine: <code>platform user grant-operator --email ADDRESS</code>.
      </p>
      <SearchField label="Name, e-mail address or id" search={setSearch} />
      <Users key={search} search={search || null} />
    </OperatorPage>
  );
}

function Users({ search }: { search: string | null }) {
  const [cursor, setCursor] = useState<string | null>(null);
  const { data, error, reload } = useQuery(USERS, { search, cursor });
  if (!data) return <Waiting error={error} />;
  const { data: users, next_cursor } = data.listInstallationUsers;
  if (!users.length) return <p class="faint">No user matches.</p>;
  return (
    <>
      <RowsTable<User>
        label="Users"
        rows={users}
        keyOf={({ id }) => id}
        columns={{
          User: ({ name, email, is_operator, account_status }) => (
            <>
              <span class="clip">{name}</span>
              <small class="reason">{email}</small>
              {is_operator && <Status value="operator" />}
              {account_status === 'suspended' && <Status value="suspended" />}
            </>
          ),
          'Last seen': ({ last_seen_at }) => <Ago time={last_seen_at} />,
          'Two-factor': ({ two_factor_enabled }) => (two_factor_enabled ? 'on' : 'off'),
          Address: ({ email_confirmed }) => (email_confirmed ? 'confirmed' : 'not confirmed'),
          Projects: ({ projects }) => projects,
          Keys: ({ keys }) => keys,
          Since: ({ created_at }) => <Ago time={created_at} />,
          Sessions: (user) => <Sessions user={user} reload={reload} />,
        }}
      />
      <Paging cursor={cursor} next={next_cursor} go={setCursor} />
    </>
  );
}

function Sessions({ user, reload }: { user: User; reload(): Promise<void> }) {
  const [shown, setShown] = useState<'sessions' | 'end' | null>(null);
  if (!user.sessions) return <>none</>;
  const end = async (): Promise<void> => {
    await request(END, { id: user.id });
    await reload();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setShown('sessions')}>
        {user.sessions}
        <span class="off-screen"> sessions of {user.name}</span>
      </button>
      {shown === 'sessions' && (
        <Dialog title={`Sessions of ${user.name}`} onClose={() => setShown(null)}>
          <SessionList id={user.id} />
          <footer class="actions">
            <button type="button" class="quiet" onClick={() => setShown('end')}>
              End all sessions
            </button>
          </footer>
        </Dialog>
      )}
      {shown === 'end' && (
        <Confirm
          title={`End all sessions of ${user.name}?`}
          verb="End"
          work={end}
          done={`The sessions of ${user.name} have ended.`}
          onClose={() => setShown(null)}
        >
          The person has to log in again. Keys keep working; your own session stays.
        </Confirm>
      )}
    </>
  );
}

function SessionList({ id }: { id: string }) {
  const { data, error } = useQuery(SESSIONS, { id });
  if (!data) return <Waiting error={error} rows={3} />;
  return (
    <RowsTable<Session>
      label="Sessions"
      rows={data.listUserSessions.data}
      keyOf={({ id: one }) => one}
      columns={{
        Browser: ({ user_agent, current }) => `${browserText(user_agent)}${current ? ' (this one)' : ''}`,
        Address: ({ address }) => address,
        'Last use': ({ last_seen_at }) => <Ago time={last_seen_at} />,
      }}
    />
  );
}
