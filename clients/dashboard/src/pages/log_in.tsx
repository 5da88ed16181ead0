// Logging in, and the first start of an installation.
import { useEffect, useState } from 'preact/hooks';
import { request } from '../api/client';
import { graphql } from '../api/graphql';
import { useAction, useQuery } from '../api/use_query';
import { Field, Form, Problem, Submit, useFields } from '../parts/form';
import { address, navigate } from '../router';
import { loadSession, viewer } from '../session';

const METHODS = graphql(`
  query LoginMethods {
    loginMethods {
      password
      providers {
        name
        title
      }
    }
  }
`);
const LOGIN = graphql(`
  mutation Login($input: LoginInput!) {
    login(input: $input) {
      user {
        id
      }
    }
  }
`);
const SET_UP = graphql(`
  mutation SetUpOwner($input: SetUpOwnerInput!) {
    setUpOwner(input: $input) {
      user {
        id
      }
    }
  }
`);

/** Where to go on: a path of this server, and nothing else. */
export function returnPath(): string {
  const to = address.peek().query.get('return_to') ?? '/';
  return URL.canParse(to, location.origin) && new URL(to, location.origin).origin === location.origin ? to : '/';
}

export function LogIn() {
  const { data } = useQuery(METHODS, {});
  const fields = useFields({ email: '', password: '', code: '' });
  const [asksCode, setAsksCode] = useState(false);
  const action = useAction(async () => {
    const { email, password, code } = fields.values;
    await request(LOGIN, { input: { email, password, ...(code && { code }) } });
    viewer.value = undefined;
    await loadSession();
    navigate(returnPath(), 'replace');
  });
  useEffect(() => void (document.title = 'Log in · Dashboard'), []);
  useEffect(() => {
    if (action.error?.code === 'two_factor_required') setAsksCode(true);
  }, [action.error]);
  const isFirstQuestion = action.error?.code === 'two_factor_required' && !fields.values.code;
  const email = { type: 'email', autocomplete: 'username', required: true };
  const password = { type: 'password', autocomplete: 'current-password', required: true };
  return (
    <main id="main" class="narrow" tabIndex={-1}>
      <h1>Log in</h1>
      <Form action={action} isFleeting>
        <Problem error={isFirstQuestion ? null : action.error} fields={['email', 'password', 'code']} />
        <Field label="E-mail address" {...fields.of('email', action)} {...email} />
        <Field label="Password" {...fields.of('password', action)} {...password} />
        {asksCode && (
          <Field
            label="Code"
            {...fields.of('code', action)}
            {...{ autocomplete: 'one-time-code', required: true, autoFocus: true }}
            hint="Of your authenticator app, or a recovery code."
          />
        )}
        <Submit action={action}>Log in</Submit>
      </Form>
      <OtherWays providers={data?.loginMethods.providers ?? []} />
    </main>
  );
}

function OtherWays({ providers }: { providers: readonly { title: string }[] }) {
  const to = `/login?return_to=${encodeURIComponent(returnPath())}`;
  return (
    <p class="below">
      <a href="/account/reset-password">Forgotten password</a>
      {providers.length > 0 && <a href={to}>Log in with {providers.map(({ title }) => title).join(' or ')}</a>}
    </p>
  );
}

/** The address that the first start prints leads here, with its code behind `#`. */
export function Welcome() {
  const [code] = useState(() => location.hash.slice(1));
  const fields = useFields({ name: '', email: '', password: '' });
  const action = useAction(async () => {
    const { name, email, password } = fields.values;
    await request(SET_UP, { input: { code, email, password, ...(name && { name }) } });
    viewer.value = undefined;
    await loadSession();
    navigate('/', 'replace');
  });
  useEffect(() => {
    document.title = 'Welcome · Dashboard';
    // The code stays in no history.
    history.replaceState(null, '', '/welcome');
  }, []);
  const email = { type: 'email', autocomplete: 'username', required: true };
  const password = { type: 'password', autocomplete: 'new-password', required: true, minLength: 12 };
  return (
    <main id="main" class="narrow" tabIndex={-1}>
      <h1>Welcome</h1>
      {code ? (
        <p>This installation is new. Choose how you log in from now on.</p>
      ) : (
        <p class="notice">Open the whole address that the service has printed at its start: it ends with a code.</p>
      )}
      <Form action={action} isFleeting>
        <Problem error={action.error} fields={['name', 'email', 'password']} />
        <Field label="Your name" {...fields.of('name', action)} autocomplete="name" />
        <Field label="E-mail address" {...fields.of('email', action)} {...email} />
        <Field
          label="Password"
          {...fields.of('password', action)}
          {...password}
          hint="At least 12 characters. Several words are easy to remember."
        />
        <Submit action={action}>Set password and log in</Submit>
      </Form>
    </main>
  );
}
