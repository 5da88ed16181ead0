// The users of a database: their passwords are shown once, when they are made.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { Section, Table, Waiting } from '../../parts/page';
import { SecretOnce } from '../../parts/secret_once';
import { Ago } from '../../parts/time';
import { DatabaseFrame, type ShownDatabase } from './frame';
import { reversalText } from '../../parts/reversal';

const USERS = graphql(`
  query DatabaseUsers($id: ID!) {
    listDatabaseUsers(id: $id, limit: 100) {
      data {
        id
        username
        access
        is_default
        previous_password_valid_until
        created_at
      }
      next_cursor
    }
  }
`);
const CREATE = graphql(`
  mutation CreateDatabaseUser($id: ID!, $input: CreateDatabaseUserInput!) {
    createDatabaseUser(id: $id, input: $input) {
      username
      password
    }
  }
`);
const ROTATE = graphql(`
  mutation RotateDatabaseUser($id: ID!, $user_id: ID!, $input: RotateDatabasePasswordInput) {
    rotateDatabaseUserPassword(id: $id, user_id: $user_id, input: $input) {
      username
      password
    }
  }
`);
const DELETE = graphql(`
  mutation DeleteDatabaseUser($id: ID!, $user_id: ID!) {
    deleteDatabaseUser(id: $id, user_id: $user_id)
  }
`);

type User = ResultOf<typeof USERS>['listDatabaseUsers']['data'][number];
type Access = User['access'];
interface Made {
  username: string;
  password: string | null;
}

const ACCESS: { value: Access; label: string }[] = [
  { value: 'read_write', label: 'read and write' },
  { value: 'read_only', label: 'read only' },
  { value: 'admin', label: 'admin' },
];

export function DatabaseUsers({ id }: { id: string }) {
  return (
    <DatabaseFrame id={id} section="Users" command={`svc api listDatabaseUsers ${id}`}>
      {(shown) => <Users shown={shown} />}
    </DatabaseFrame>
  );
}

function Users({ shown }: { shown: ShownDatabase }) {
  const { id } = shown.database;
  const { data, error, reload } = useQuery(USERS, { id });
  const [made, setMade] = useState<Made | null>(null);
  const list = data?.listDatabaseUsers.data;
  const take = async (user: Made): Promise<void> => {
    setMade(user);
    await reload();
  };
  return (
    <>
      {made?.password && (
        <SecretOnce
          key={made.password}
          secret={made.password}
          label={`password of ${made.username}`}
          onClose={() => setMade(null)}
        />
      )}
      {shown.mayChange && <Add id={id} take={take} />}
      <Section title="Users">
        {!list && <Waiting error={error} />}
        {list && (
          <Table label="Users" head={['Name', 'Access', 'Created', 'Password', '']}>
            {list.map((user) => (
              <tr key={user.id}>
                <th scope="row">
                  <span>{user.username}</span>
                </th>
                <td>{ACCESS.find(({ value }) => value === user.access)?.label}</td>
                <td>
                  <Ago time={user.created_at} />
                </td>
                <td>
                  {user.previous_password_valid_until ? (
                    <>
                      the previous one ends <Ago time={user.previous_password_valid_until} />
                    </>
                  ) : (
                    'set'
                  )}
                </td>
                <td>{shown.mayChange && <Actions id={id} user={user} take={take} reload={reload} />}</td>
              </tr>
            ))}
          </Table>
        )}
      </Section>
    </>
  );
}

function Add({ id, take }: { id: string; take(user: Made): Promise<void> }) {
  const fields = useFields({ username: '', access: 'read_write' });
  const action = useAction(async () => {
    const { username, access } = fields.values;
    const { createDatabaseUser } = await request(CREATE, { id, input: { username, access: access as Access } });
    fields.set({ username: '' });
    await take(createDatabaseUser);
  });
  return (
    <Form action={action} class="inline form-line">
      <Field label="Add a user" {...fields.of('username', action)} required autocomplete="off" placeholder="reports" />
      <Select
        label="Access"
        {...fields.of('access', action)}
        options={ACCESS}
        onChange={(access) => fields.set({ access })}
      />
      <Submit action={action}>Add</Submit>
      <Problem error={action.error} fields={['username', 'access']} />
    </Form>
  );
}

interface ActionsProps {
  id: string;
  user: User;
  take(user: Made): Promise<void>;
  reload(): Promise<void>;
}

function Actions({ id, user, take, reload }: ActionsProps) {
  const [asks, setAsks] = useState<'rotate' | 'delete' | null>(null);
  const one = { id, user_id: user.id };
  const rotate = async (): Promise<void> => {
    const { rotateDatabaseUserPassword } = await request(ROTATE, { ...one, input: { immediate: false } });
    await take(rotateDatabaseUserPassword);
  };
  const remove = async (): Promise<void> => {
    await request(DELETE, one);
    await reload();
  };
  return (
    <>
      <button type="button" class="quiet small" onClick={() => setAsks('rotate')}>
        New password<span class="off-screen"> for {user.username}</span>
      </button>{' '}
      {!user.is_default && (
        <button type="button" class="quiet small" onClick={() => setAsks('delete')}>
          Delete<span class="off-screen"> {user.username}</span>
        </button>
      )}
      {asks === 'rotate' && (
        <Confirm
          title={`A new password for ${user.username}?`}
          verb="Make a new password"
          work={rotate}
          onClose={() => setAsks(null)}
        >
          Applications to which it is attached are restarted with the new one. The present password holds until then,
          for at most 30 minutes.
        </Confirm>
      )}
      {asks === 'delete' && (
        <Confirm
          title={`Delete ${user.username}?`}
          verb="Delete"
          work={remove}
          done={`The user ${user.username} was deleted.`}
          onClose={() => setAsks(null)}
        >
          Programs that log in with this name are refused from then on. {reversalText(null)}
        </Confirm>
      )}
    </>
  );
}
