// Everybody who may knock: keys of all sorts, as the access tests try them on each operation.
import { scopes as allScopes } from '../../../core/accounts/scopes';
import type { TestService } from '../service';

/** What the rules need to know of a caller; the token itself apart. */
export interface Actor {
  name: string;
  /** null sends no token. */
  token: string | null;
  /** Code that every operation with a token answers, where the token is no good. */
  refused?: string;
  kind?: 'personal' | 'project';
  /** null = all. */
  scopes?: readonly string[] | null;
  /** Absent = yes. */
  mayDestroy?: false;
  /** Projects that the key is restricted to, null = not restricted. */
  projects?: readonly string[] | null;
  role?: 'owner' | 'developer' | 'viewer';
  /** Projects that the person is a member of. */
  member?: readonly string[];
  /** Value of X-Svc-Project, null = none. */
  header: string | null;
}

/** @param other a further project of the same owner; @param stranger one of another account */
export async function allActors(service: TestService, other: string, stranger: string): Promise<Actor[]> {
  const { project } = service;
  const owner = {
    kind: 'personal',
    scopes: null,
    projects: null,
    role: 'owner',
    member: [project, other],
    header: project,
  } as const;
  const unknown = 'prj_01h455vb4pex5vsknk084sn02q';
  const mint = (options: Parameters<TestService['mintKey']>[0]): Promise<string> => service.mintKey(options);
  const scoped = Object.keys(allScopes).map(async (scope): Promise<Actor> => ({
    ...owner,
    name: `only ${scope}`,
    scopes: [scope],
    token: await mint({ scopes: [scope] }),
  }));
  const projectKey = { kind: 'project', scopes: null, role: 'developer' } as const;
  const own = await mint({ kind: 'project' });
  const foreign = await mint({ kind: 'project', project_id: other });
  return [
    ...(await badTokens(service)),
    ...(await Promise.all(scoped)),
    { ...owner, name: 'owner', token: service.key },
    { ...owner, name: 'owner without a project', token: service.key, header: null },
    { ...owner, name: 'owner with an unknown project', token: service.key, header: unknown },
    { ...owner, name: 'owner with nonsense as project', token: service.key, header: 'shop' },
    { ...owner, name: 'owner with a project of somebody else', token: service.key, header: stranger },
    { ...owner, name: 'no scopes', scopes: [], token: await mint({ scopes: [] }) },
    { ...owner, name: 'may not destroy', mayDestroy: false, token: await mint({ may_destroy: false }) },
    { ...owner, name: 'developer', role: 'developer', member: [project], token: await mint({ role: 'developer' }) },
    { ...owner, name: 'viewer', role: 'viewer', member: [project], token: await mint({ role: 'viewer' }) },
    {
      ...owner,
      name: 'restricted to this project',
      projects: [project],
      token: await mint({ project_ids: [project] }),
    },
    { ...owner, name: 'restricted to another project', projects: [other], token: await mint({ project_ids: [other] }) },
    { ...projectKey, name: 'project key', projects: [project], member: [project], header: project, token: own },
    {
      ...projectKey,
      name: 'project key without the header',
      projects: [project],
      member: [project],
      header: null,
      token: own,
    },
    {
      ...projectKey,
      name: 'project key of another project',
      projects: [other],
      member: [other],
      header: project,
      token: foreign,
    },
  ];
}

async function badTokens(service: TestService): Promise<Actor[]> {
  const header = service.project;
  const revoked = await service.mintKey();
  await service.sql("update api_keys set revoked_at = now() where hash = encode(sha256($1::bytea), 'hex')", [revoked]);
  const unknown = await service.mintKey();
  await service.sql("delete from api_keys where hash = encode(sha256($1::bytea), 'hex')", [unknown]);
  const last = service.key.slice(-1);
  return [
    { name: 'no key', token: null, refused: 'token_missing', header },
    { name: 'malformed key', token: 'hunter2', refused: 'token_invalid', header },
    {
      name: 'wrong checksum',
      token: service.key.slice(0, -1) + (last === 'a' ? 'b' : 'a'),
      refused: 'token_invalid',
      header,
    },
    { name: 'unknown key', token: unknown, refused: 'token_invalid', header },
    { name: 'revoked key', token: revoked, refused: 'token_invalid', header },
    {
      name: 'expired key',
      token: await service.mintKey({ expires_at: '2020-01-01T00:00:00.000Z' }),
      refused: 'token_expired',
      header,
    },
    { name: 'suspended account', token: await suspendedKey(service), refused: 'account_suspended', header },
  ];
}

/** The owner of an account that was suspended. */
async function suspendedKey(service: TestService): Promise<string> {
  const { id, key } = await service.newProject({ stranger: true });
  await service.sql(
    `update accounts set status = 'suspended' where id = (select account_id from projects where id = $1)`,
    [id],
  );
  return key;
}
