// A person at the dashboard: GraphQL with a cookie jar.
import { mintId } from '../../../core/ids';
import { storedPassword } from '../contract/password';
import type { TestService } from '../service';

export const PASSWORD = 'a long enough password';

type Answer = Awaited<ReturnType<TestService['graphql']>>;

export interface Browser {
  /** Runs one operation; cookies are kept as a browser keeps them. */
  run(query: string, variables?: Record<string, unknown>, headers?: Record<string, string>): Promise<Answer>;
  /** Code of the first error; fails where there is none. */
  refused(query: string, variables?: Record<string, unknown>): Promise<Refusal>;
  /** As run, and answers the data; fails on an error. */
  data(query: string, variables?: Record<string, unknown>): Promise<Data>;
  logIn(email: string, password?: string, code?: string): Promise<Answer>;
  cookie(): string;
  setCookie: string | null;
}

/* oxlint-disable-next-line typescript/no-explicit-any -- answers are whatever the service sends */
type Data = any;

export interface Refusal {
  code: string;
  status: number;
  message: string;
  extensions: Record<string, unknown>;
}

export const LOGIN = `mutation ($input: LoginInput!) { login(input: $input) {
  user { id name email } account { id } session { id current } two_factor_enabled recovery_codes_left } }`;

export function browser(service: TestService): Browser {
  let cookie = '';
  const self: Browser = {
    setCookie: null,
    cookie: () => cookie,
    async run(query, variables = {}, headers = {}) {
      const answer = await service.graphql(query, variables, { key: null, project: null, cookie, headers });
      self.setCookie = answer.headers.get('set-cookie');
      if (self.setCookie) cookie = storeCookie(self.setCookie);
      return answer;
    },
    async refused(query, variables) {
      const { errors, text } = await self.run(query, variables);
      const first = errors?.[0];
      if (!first) throw new Error(`expected a refusal, got ${text}`);
      return {
        code: first.extensions.code,
        status: first.extensions.status,
        message: first.message,
        extensions: first.extensions,
      };
    },
    async data(query, variables) {
      const { data, errors } = await self.run(query, variables);
      if (errors) throw new Error(JSON.stringify(errors));
      return data;
    },
    logIn: (email, password = PASSWORD, code) =>
      self.run(LOGIN, { input: { email, password, ...(code !== undefined && { code }) } }),
  };
  return self;
}

function storeCookie(setCookie: string): string {
  return /Max-Age=0\b/.test(setCookie) ? '' : (setCookie.split(';')[0] as string);
}

/**
 * A user with an account of their own and the password PASSWORD, made in the database; a member of the project where a
 * role is given.
 */
export async function newUser(
  service: TestService,
  email: string,
  role?: 'owner' | 'developer' | 'viewer',
): Promise<{ id: string; email: string }> {
  const [account, id] = [mintId('acc'), mintId('usr')];
  await service.sql('insert into accounts (id, name) values ($1, $2)', [account, email]);
  await service.sql('insert into users (id, account_id, email, name, password_hash) values ($1, $2, $3, $4, $5)', [
    id,
    account,
    email,
    'Somebody',
    storedPassword(PASSWORD),
  ]);
  if (role)
    await service.sql('insert into members (project_id, user_id, role) values ($1, $2, $3)', [
      service.project,
      id,
      role,
    ]);
  return { id, email };
}

/** A new user who is logged in. */
export async function newBrowser(
  service: TestService,
  email: string,
  role?: 'owner' | 'developer' | 'viewer',
): Promise<Browser & { user: { id: string; email: string } }> {
  const user = await newUser(service, email, role);
  const one = browser(service);
  const { errors } = await one.logIn(email);
  if (errors) throw new Error(JSON.stringify(errors));
  return Object.assign(one, { user });
}
