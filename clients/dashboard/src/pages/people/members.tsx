// Who may do what in a project, and who is invited.
import { useState } from 'preact/hooks';
import { request } from '../../api/client';
import { graphql, type ResultOf } from '../../api/graphql';
import { useAction, useQuery } from '../../api/use_query';
import { Confirm } from '../../parts/dialog';
import { Field, Form, Problem, Select, Submit, useFields } from '../../parts/form';
import { showNotice } from '../../parts/notices';
import { Page, Section, Table, Waiting } from '../../parts/page';
import { SecretOnce } from '../../parts/secret_once';
import { Ago } from '../../parts/time';
import { loadSession, mayActAs, viewer, type Role } from '../../session';

const MEMBERS = graphql(`
  query Members($id: ID!) {
    listMembers(project_id: $id, limit: 100) {
      data {
        user_id
        name
        email
        role
        created_at
      }
    }
  }
`);
const INVITATIONS = graphql(`
  query Invitations($id: ID!) {
    listInvitations(project_id: $id, limit: 100) {
      data {
        id
        email
        role
        created_at
        expires_at
      }
    }
  }
`);
const INVITE = graphql(`
  mutation Invite($project_id: ID!, $input: InviteMemberInput!) {
    inviteMember(project_id: $project_id, input: $input) {
      token
      invitation {
        email
      }
    }
  }
`);
const REVOKE = graphql(`
  mutation RevokeInvitation($project_id: ID!, $id: ID!) {
    revokeInvitation(project_id: $project_id, id: $id)
  }
`);
const CHANGE = graphql(`
  mutation ChangeRole($project_id: ID!, $user_id: ID!, $role: Role!) {
    changeMemberRole(project_id: $project_id, user_id: $user_id, role: $role) {
      user_id
    }
  }
`);
const REMOVE = graphql(`
  mutation RemoveMember($project_id: ID!, $user_id: ID!) {
    removeMember(project_id: $project_id, user_id: $user_id)
  }
`);

type Member = ResultOf<typeof MEMBERS>['listMembers']['data'][number];

const ROLES = (['viewer', 'developer', 'owner'] as const).map((value) => ({ value, label: value }));

export function Members({ id }: { id: string }) {
  const { data, error, reload } = useQuery(MEMBERS, { id });
  const isOwner = mayActAs('owner', id);
  return (
    <Page title="Members" projectId={id}>
      <Section title="Members">
        {!data && <Waiting error={error} />}
        {data && (
          <Table label="Members" head={['Name', 'E-mail', 'Role', 'Joined', '']}>
            {data.listMembers.data.map((member) => (
              <MemberRow key={member.user_id} projectId={id} member={member} isOwner={isOwner} reload={reload} />
            ))}
          </Table>
        )}
      </Section>
      {isOwner ? <Invitations id={id} /> : <p class="faint">Owners invite people and change roles.</p>}
    </Page>
  );
}

interface RowProps {
  projectId: string;
  member: Member;
  isOwner: boolean;
  reload(): Promise<void>;
}

function MemberRow({ projectId, member, isOwner, reload }: RowProps) {
  const [asks, setAsks] = useState(false);
  const isSelf = viewer.value?.user.id === member.user_id;
  const change = useAction(async (role: Role) => {
    await request(CHANGE, { project_id: projectId, user_id: member.user_id, role });
    await reload();
    if (isSelf) await loadSession();
  });
  const remove = async (): Promise<void> => {
    await request(REMOVE, { project_id: projectId, user_id: member.user_id });
    if (isSelf) location.assign('/');
    else await reload();
  };
  return (
    <tr>
      <th scope="row">
        <span>{member.name}</span>
      </th>
      <td>{member.email}</td>
      <td>
        {isOwner ? (
          <Select
            label={`Role of ${member.email}`}
            isLabelHidden
            name={member.user_id}
            value={member.role}
            options={ROLES}
            onChange={(role) => void change.run(role as Role)}
          />
        ) : (
          member.role
        )}
        <Problem error={change.error} />
      </td>
      <td>
        <Ago time={member.created_at} />
      </td>
      <td>
        {(isOwner || isSelf) && (
          <button type="button" class="quiet small" onClick={() => setAsks(true)}>
            {isSelf ? 'Leave' : 'Remove'}
            <span class="off-screen"> {isSelf ? 'the project' : member.email}</span>
          </button>
        )}
        {asks && (
          <Confirm
            title={isSelf ? 'Leave the project?' : `Remove ${member.name}?`}
            verb={isSelf ? 'Leave' : 'Remove'}
            work={remove}
            done={isSelf ? 'You left the project.' : `${member.name} was removed.`}
            onClose={() => setAsks(false)}
          >
            {isSelf ? 'You see' : `${member.email} sees`} nothing of the project from then on. Keys of the project stay.
          </Confirm>
        )}
      </td>
    </tr>
  );
}

function Invitations({ id }: { id: string }) {
  const { data, error, reload } = useQuery(INVITATIONS, { id });
  const [made, setMade] = useState<{ token: string; email: string } | null>(null);
  const revoke = useAction(async (invitation: string) => {
    await request(REVOKE, { project_id: id, id: invitation });
    showNotice({ text: 'The invitation was withdrawn.' });
    await reload();
  });
  const list = data?.listInvitations.data;
  return (
    <Section title="Invitations">
      {made && (
        <SecretOnce
          secret={`${location.origin}/account/invitation?token=${made.token}`}
          label={`link for ${made.email}`}
          onClose={() => setMade(null)}
        >
          Send it to the person, unless the platform has mailed it: whoever opens it joins the project, once.
        </SecretOnce>
      )}
      <Invite
        id={id}
        invited={async (one) => {
          setMade(one);
          await reload();
        }}
      />
      <Problem error={revoke.error} />
      {!list && <Waiting error={error} />}
      {list?.length === 0 && <p class="faint">No open invitations. An invitation works once, within seven days.</p>}
      {list && list.length > 0 && (
        <Table label="Invitations" head={['E-mail', 'Role', 'Expires', '']}>
          {list.map((one) => (
            <tr key={one.id}>
              <th scope="row">
                <span>{one.email}</span>
              </th>
              <td>{one.role}</td>
              <td>
                <Ago time={one.expires_at} />
              </td>
              <td>
                <button type="button" class="quiet small" onClick={() => void revoke.run(one.id)}>
                  Withdraw<span class="off-screen"> the invitation of {one.email}</span>
                </button>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

interface InviteProps {
  id: string;
  invited(made: { token: string; email: string }): Promise<void>;
}

function Invite({ id, invited }: InviteProps) {
  const fields = useFields({ email: '', role: 'developer' });
  const action = useAction(async () => {
    const input = { email: fields.values.email.trim(), role: fields.values.role as Role };
    const { inviteMember } = await request(INVITE, { project_id: id, input });
    fields.set({ email: '' });
    await invited({ token: inviteMember.token, email: inviteMember.invitation.email });
  });
  return (
    <Form action={action} class="inline form-line">
      <Field label="Invite by e-mail" {...fields.of('email', action)} type="email" required autocomplete="off" />
      <Select label="Role" {...fields.of('role', action)} options={ROLES} onChange={(role) => fields.set({ role })} />
      <Submit action={action}>Invite</Submit>
      <Problem error={action.error} fields={['email', 'role']} />
    </Form>
  );
}
