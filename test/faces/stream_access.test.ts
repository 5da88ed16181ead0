// A stream lasts no longer than the right to open it, whatever took the right away, and says why it ends.
import { setTimeout as sleep } from 'node:timers/promises';
import { mintId } from '../../core/ids';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import { newUser, PASSWORD } from '../support/identity/browser';
import { startService, type TestService } from '../support/service';
import {
  bearer,
  ENDS_WITHIN_MS,
  faces,
  makeTarget,
  personalKey,
  REVOKE_KEY,
  type Face,
  type OpenStream,
  type Target,
} from '../support/contract/streams';

jest.setTimeout(120_000);

let service: TestService;
let target: Target;

/** Who follows, and what takes the right away. */
interface Case {
  headers: Record<string, string>;
  target?: Target;
  revoke(): Promise<unknown>;
}

interface Cause {
  name: string;
  code: string;
  begin(): Promise<Case>;
  /** Default: all of them. */
  where?: (face: Face) => boolean;
}

const onGraphql = ({ name }: Face): boolean => name.startsWith('GraphQL');

/** A change by a row alone is one by another process whose notification was lost. */
const withKey = (statement: string) => async (): Promise<Case> => {
  const token = await personalKey(service);
  return { headers: bearer(token), revoke: () => service.sql(statement, [sha256(token)]) };
};

type Answer = Awaited<ReturnType<TestService['graphql']>>;
type Data = (query: string, variables?: Record<string, unknown>) => Promise<Answer['data']>;

interface Session {
  id: string;
  user: string;
  cookie: string;
  data: Data;
}

/** As a login makes it, which is slow on purpose. */
async function newSession(user: string): Promise<Session> {
  const [id, secret] = [mintId('ses'), mintSecret('ses_')];
  await service.sql(
    `insert into sessions (id, hash, user_id, address, user_agent, expires_at)
      values ($1, $2, $3, '', '', now() + interval '1 day')`,
    [id, sha256(secret), user],
  );
  const cookie = `platform_session=${secret}`;
  const data: Data = async (query, variables) => {
    const answer = await service.graphql(query, variables, { key: null, project: null, cookie });
    if (answer.errors) throw new Error(answer.text);
    return answer.data;
  };
  return { id, user, cookie, data };
}

let people = 0;
const person = async (): Promise<Session> =>
  newSession((await newUser(service, `person-${(people += 1)}@example.com`, 'developer')).id);

const withSession = (revoke: (one: Session) => Promise<unknown>) => async (): Promise<Case> => {
  const one = await person();
  return { headers: { Cookie: one.cookie }, revoke: () => revoke(one) };
};

const causes: Cause[] = [
  {
    name: 'a key is revoked by its owner',
    code: 'token_invalid',
    async begin() {
      const one = await person();
      const { createPersonalKey } = await one.data(
        `mutation { createPersonalKey(input: {name: "k", scopes: ["read", "logs:read"]}) {
          token key { id } } }`,
      );
      const { token, key } = createPersonalKey;
      return {
        headers: bearer(token),
        revoke: () => one.data('mutation ($id: ID!) { revokePersonalKey(id: $id) }', { id: key.id }),
      };
    },
  },
  {
    name: 'a key is revoked, unnoticed by this process',
    code: 'token_invalid',
    begin: withKey(REVOKE_KEY),
  },
  {
    name: 'a project key is revoked',
    code: 'token_invalid',
    async begin() {
      const token = await service.mintKey({ kind: 'project' });
      return { headers: bearer(token), revoke: () => service.sql(REVOKE_KEY, [sha256(token)]) };
    },
  },
  {
    name: 'a key is deleted',
    code: 'token_invalid',
    begin: withKey('delete from api_keys where hash = $1'),
  },
  {
    name: 'a key expires',
    code: 'token_expired',
    async begin() {
      const end = Date.now() + 12_000;
      const expires_at = new Date(end).toISOString();
      const token = await personalKey(service, { expires_at });
      return { headers: bearer(token), revoke: () => sleep(end - Date.now()) };
    },
  },
  {
    name: 'the scopes of a key become fewer',
    code: 'insufficient_scope',
    begin: withKey(`update api_keys set scopes = '{deploy}' where hash = $1`),
  },
  {
    name: 'a key is restricted to other projects',
    code: 'project_not_allowed',
    begin: withKey(`update api_keys set project_ids = '{prj_01h455vb4pex5vsknk084sn02q}' where hash = $1`),
  },
  {
    name: 'the member is removed',
    code: 'project_not_found',
    begin: withKey('delete from members where user_id = (select user_id from api_keys where hash = $1)'),
  },
  {
    name: 'the account is suspended',
    code: 'account_suspended',
    begin: withKey(`update accounts set status = 'suspended' where id = (
      select u.account_id from users u join api_keys k on k.user_id = u.id where k.hash = $1)`),
  },
  {
    name: 'the project is deleted',
    code: 'project_not_found',
    async begin() {
      const { id, key } = await service.newProject({ stranger: true });
      return {
        headers: bearer(key),
        target: await makeTarget(service, id, key),
        revoke: () => service.sql('update projects set deleted_at = now() where id = $1', [id]),
      };
    },
  },
  {
    name: 'the application is deleted',
    code: 'not_found',
    where: ({ name }) => name.includes('log'),
    async begin() {
      const one = await makeTarget(service, service.project, service.key);
      return {
        headers: bearer(await personalKey(service)),
        target: one,
        revoke: () => service.sql('update applications set deleted_at = now() where id = $1', [one.application]),
      };
    },
  },
  {
    name: 'the session logs out',
    code: 'session_required',
    where: onGraphql,
    begin: withSession((one) => one.data('mutation { logout }')),
  },
  {
    name: 'the session is revoked by another',
    code: 'session_required',
    where: onGraphql,
    begin: withSession(async ({ id, user }) =>
      (await newSession(user)).data('mutation ($id: ID!) { revokeSession(id: $id) }', { id }),
    ),
  },
  {
    name: 'the password is changed in another session',
    code: 'session_required',
    where: onGraphql,
    begin: withSession(async ({ user }) =>
      (await newSession(user)).data(
        `mutation ($old: String!) { changePassword(input: {password: $old, new_password: "violet harbour 77 kites"}) {
          revoked_keys { id } } }`,
        { old: PASSWORD },
      ),
    ),
  },
  {
    name: 'all sessions end, unnoticed by this process',
    code: 'session_required',
    where: onGraphql,
    begin: withSession(({ user }) => service.sql('delete from sessions where user_id = $1', [user])),
  },
  {
    name: 'the session expires',
    code: 'session_required',
    where: onGraphql,
    begin: withSession(({ user }) => service.sql('update sessions set expires_at = now() where user_id = $1', [user])),
  },
  {
    name: 'the session was idle for too long, though its stream is open',
    code: 'session_required',
    where: onGraphql,
    begin: withSession(async ({ user }) => {
      // What was used before the stream is written down every five seconds.
      await sleep(6_000);
      await service.sql(`update sessions set last_seen_at = now() - interval '25 hours' where user_id = $1`, [user]);
    }),
  },
  {
    name: 'the member of the session is removed',
    code: 'project_not_found',
    where: onGraphql,
    begin: withSession(({ user }) => service.sql('delete from members where user_id = $1', [user])),
  },
  {
    name: 'the user is deleted',
    code: 'session_required',
    where: onGraphql,
    begin: withSession(async ({ user }) => {
      await service.sql('delete from members where user_id = $1', [user]);
      await service.sql('delete from users where id = $1', [user]);
    }),
  },
];

const cases = causes.flatMap((cause) =>
  faces.filter(cause.where ?? (() => true)).map((face) => [cause.name, face.name, { cause, face }] as const),
);

interface Ended {
  stream: OpenStream;
  withinMs: number;
}

async function followUntilRevoked(cause: Cause, face: Face): Promise<Ended> {
  const { headers, revoke, target: own = target } = await cause.begin();
  const stream = await face.open(service, headers, own);
  await revoke();
  const begun = performance.now();
  const isOver = await Promise.race([stream.ended.then(() => true), sleep(ENDS_WITHIN_MS, false)]);
  const withinMs = isOver ? performance.now() - begun : Infinity;
  stream.close();
  return { stream, withinMs };
}

beforeAll(async () => {
  service = await startService();
  target = await makeTarget(service, service.project, service.key);
});
afterAll(() => service.close());

describe('it ends when', () => {
  const running = new Map<string, Promise<Ended>>();

  beforeAll(() => {
    // The faces side by side, since each takes seconds in which nothing happens; the causes one after the other.
    let turn: Promise<unknown> = Promise.resolve();
    for (const cause of causes) {
      const before = turn;
      const results = faces.filter(cause.where ?? (() => true)).map((face) => {
        const result = before.then(() => followUntilRevoked(cause, face));
        running.set(`${cause.name} ${face.name}`, result);
        return result;
      });
      turn = Promise.allSettled(results);
    }
  });

  test.each(cases)('%s: %s', async (name, faceName, { cause, face }) => {
    const { stream, withinMs } = (await running.get(`${name} ${faceName}`)) as Ended;
    expect(withinMs).toBeLessThan(ENDS_WITHIN_MS);
    expect(face.reason(stream.text())).toBe(cause.code);
  });
});
