// Users, keys and projects that a test wants beside those of the first start, made as rows.
import { mintId } from '../../core/ids';
import { scopes as allScopes } from '../../core/accounts/scopes';
import { mintToken } from '../../core/accounts/tokens';
import type { KeyOptions } from './service';

export type Run = <Row>(text: string, values?: unknown[]) => Promise<Row[]>;

interface Known {
  project: string;
}

export async function mintKey(sql: Run, known: Known, options: KeyOptions = {}): Promise<string> {
  const { kind = 'personal', scopes = Object.keys(allScopes), project_ids = null, expires_at = null } = options;
  const { may_destroy = true } = options;
  const { token, prefix, hash } = mintToken(kind);
  const user =
    kind === 'project' ? null : options.role ? await newUser(sql, known, options.role) : (await owner(sql, known)).id;
  await sql(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, project_id, scopes, project_ids, expires_at,
      may_destroy)
      values ($1, $2, 'Test key', $3, $4, $5, $6, $7, $8, $9, $10)`,
    [
      mintId('key'),
      kind,
      prefix,
      hash,
      user,
      kind === 'project' ? (options.project_id ?? known.project) : null,
      kind === 'project' ? null : scopes,
      project_ids,
      expires_at,
      may_destroy,
    ],
  );
  return token;
}

async function owner(sql: Run, known: Known): Promise<{ id: string; account_id: string }> {
  const [row] = await sql<{ id: string; account_id: string }>(
    `select u.id, u.account_id from users u join members m on m.user_id = u.id
      where m.project_id = $1 and m.role = 'owner' order by u.id limit 1`,
    [known.project],
  );
  return row as { id: string; account_id: string };
}

async function newUser(sql: Run, known: Known, role: string): Promise<string> {
  const { account_id } = await owner(sql, known);
  const id = mintId('usr');
  await sql('insert into users (id, account_id, email, name) values ($1, $2, $3, $4)', [
    id,
    account_id,
    `${id}@example.com`,
    'Test user',
  ]);
  await sql('insert into members (project_id, user_id, role) values ($1, $2, $3)', [known.project, id, role]);
  return id;
}

export async function newProject(sql: Run, known: Known, stranger: boolean): Promise<{ id: string; key: string }> {
  let user = await owner(sql, known);
  if (stranger) {
    user = { id: mintId('usr'), account_id: mintId('acc') };
    await sql('insert into accounts (id, name) values ($1, $2)', [user.account_id, 'Other']);
    await sql('insert into users (id, account_id, email, name) values ($1, $2, $3, $4)', [
      user.id,
      user.account_id,
      `${user.id}@example.com`,
      'Stranger',
    ]);
  }
  const id = mintId('prj');
  await sql(
    `insert into projects (id, account_id, name, default_region, created_at, updated_at)
      values ($1, $2, 'Other project', 'local', now(), now())`,
    [id, user.account_id],
  );
  await sql(`insert into members (project_id, user_id, role) values ($1, $2, 'owner')`, [id, user.id]);
  const { token, prefix, hash } = mintToken('personal');
  await sql(
    `insert into api_keys (id, kind, name, prefix, hash, user_id, scopes)
      values ($1, 'personal', 'Other key', $2, $3, $4, $5)`,
    [mintId('key'), prefix, hash, user.id, Object.keys(allScopes)],
  );
  return { id, key: token };
}
