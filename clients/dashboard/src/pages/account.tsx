// The person: two-factor authentication, password, sessions.
import { useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Copyable } from '../parts/copy';
import { Field, Form, Problem, Submit, useFields } from '../parts/form';
import { Page, Section, Table, Waiting } from '../parts/page';
import { browserText } from '../parts/browser_name';
import { Ago } from '../parts/time';
import { loadSession, viewer } from '../session';

const SESSIONS = graphql(`
  query Sessions {
    listSessions(limit: 50) {
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
const REVOKE = graphql(`
  mutation RevokeSession($id: ID!) {
    revokeSession(id: $id)
  }
`);
const PASSWORD = graphql(`
  mutation ChangePassword($input: ChangePasswordInput!) {
    changePassword(input: $input) {
      active_keys {
        id
      }
    }
  }
`);
const ENROL = graphql(`
  mutation Enrol($password: String!) {
    enrolTwoFactor(password: $password) {
      secret
      otpauth_url
    }
  }
`);
const CONFIRM = graphql(`
  mutation Confirm($code: String!) {
    confirmTwoFactor(code: $code) {
      codes
    }
  }
`);
const DISABLE = graphql(`
  mutation Disable($password: String!, $code: String!) {
    disableTwoFactor(password: $password, code: $code)
  }
`);

export function AccountPage() {
  const person = viewer.value;
  if (!person) return null;
  return (
    <Page title="Account and security" command="svc whoami">
      <p>
        Logged in as <strong>{person.user.email}</strong>. <a href="/account/logins">Logins at other providers</a>
      </p>
      <Section title="Two-factor authentication">
        {person.two_factor_enabled ? <Disable left={person.recovery_codes_left} /> : <Enable />}
      </Section>
      <Section title="Password">
        <Password />
      </Section>
      <Section title="Sessions">
        <Sessions />
      </Section>
    </Page>
  );
}

const CURRENT = { type: 'password', autocomplete: 'current-password', required: true };
const NEXT = { type: 'password', autocomplete: 'new-password', required: true, minLength: 12 };
const CODE = { autocomplete: 'one-time-code', required: true };

function Enable() {
  const fields = useFields({ password: '', code: '' });
  const { password, code } = fields.values;
  const [secret, setSecret] = useState<{ secret: string; otpauth_url: string } | null>(null);
  const [codes, setCodes] = useState<readonly string[]>([]);
  const enrol = useAction(async () => setSecret((await request(ENROL, { password })).enrolTwoFactor));
  const confirm = useAction(async () => setCodes((await request(CONFIRM, { code })).confirmTwoFactor.codes));
  if (codes.length) return <RecoveryCodes codes={codes} />;
  if (!secret) {
    return (
      <Form action={enrol} isFleeting>
        <p>Each login then also asks for a code of an authenticator app.</p>
        <Field label="Your password" {...fields.of('password', enrol)} {...CURRENT} />
        <Problem error={enrol.error} fields={['password']} />
        <Submit action={enrol}>Set up two-factor authentication</Submit>
      </Form>
    );
  }
  return (
    <Form action={confirm} isFleeting>
      <p>Enter this secret in your authenticator app, then the code that it shows.</p>
      <Copyable text={secret.secret} label="secret" />
      <p>
        <a href={secret.otpauth_url}>Open an authenticator app on this device</a>
      </p>
      <Field label="Code" {...fields.of('code', confirm)} {...CODE} inputMode="numeric" />
      <Problem error={confirm.error} fields={['code']} />
      <Submit action={confirm}>Turn on</Submit>
    </Form>
  );
}

function RecoveryCodes({ codes }: { codes: readonly string[] }) {
  return (
    <>
      <p class="notice good" role="status">
        Two-factor authentication is on. Keep these recovery codes: each works once, and they are shown only now.
      </p>
      <Copyable text={codes.join('\n')} label="recovery codes" shown={codes.join('  ')} />
      <p>
        <button type="button" onClick={() => void loadSession()}>
          I have saved them
        </button>
      </p>
    </>
  );
}

function Disable({ left }: { left: number }) {
  const fields = useFields({ password: '', code: '' });
  const action = useAction(async () => {
    await request(DISABLE, fields.values);
    await loadSession();
  });
  return (
    <Form action={action} isFleeting>
      <p>It is on. {left} recovery codes are left.</p>
      <div class="columns">
        <Field label="Your password" {...fields.of('password', action)} {...CURRENT} />
        <Field label="Code" {...fields.of('code', action)} {...CODE} />
      </div>
      <Problem error={action.error} fields={['password', 'code']} />
      <Submit action={action}>Turn off</Submit>
    </Form>
  );
}

function Password() {
  const fields = useFields({ password: '', new_password: '' });
  const [keys, setKeys] = useState(0);
  const [isDone, setDone] = useState(false);
  const action = useAction(async () => {
    const { changePassword } = await request(PASSWORD, { input: fields.values });
    setKeys(changePassword.active_keys.length);
    fields.set({ password: '', new_password: '' });
  });
  return (
    <Form action={action} done={setDone}>
      <div class="columns">
        <Field label="Current password" {...fields.of('password', action)} {...CURRENT} />
        <Field label="New password" {...fields.of('new_password', action)} {...NEXT} hint="At least 12 characters." />
      </div>
      <Problem error={action.error} fields={['password', 'new_password']} />
      <p aria-live="polite">
        {isDone && 'Your password is changed. All other sessions have ended.'}
        {isDone && keys > 0 && ` Personal keys that go on working: ${keys}.`}
      </p>
      <Submit action={action}>Change password</Submit>
    </Form>
  );
}

function Sessions() {
  const { data, error, reload } = useQuery(SESSIONS, {});
  const revoke = useAction(async (id: string) => {
    await request(REVOKE, { id });
    await reload();
  });
  if (!data) return <Waiting error={error} />;
  return (
    <>
      <Table label="Sessions" head={['Browser', 'Address', 'Last used', '']}>
        {data.listSessions.data.map((session) => (
          <tr key={session.id}>
            <td>
              <span title={session.user_agent ?? undefined}>{browserText(session.user_agent)}</span>
            </td>
            <td>{session.address}</td>
            <td>
              <Ago time={session.last_seen_at} />
            </td>
            <td>
              {session.current ? (
                <span class="faint">this one</span>
              ) : (
                <button type="button" class="quiet small" onClick={() => void revoke.run(session.id)}>
                  End<span class="off-screen"> the session of {session.address}</span>
                </button>
              )}
            </td>
          </tr>
        ))}
      </Table>
      <Problem error={revoke.error} />
    </>
  );
}
