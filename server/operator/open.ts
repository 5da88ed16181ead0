// The database of the service, opened the same way: by DATABASE_URL, else the embedded server of the data directory.
import { createRequire } from 'node:module';
import { loadConfig } from '../../core/config';
import type { Context, Identity, ProjectAccess } from '../../core/context';
import { mintRequestId } from '../../core/ids';
import { createLog } from '../../core/log/log';
import { findUser, type UserRow } from '../../models/identity/user';
import type * as OfContext from '../platform/context';
import type * as OfPlatform from '../platform/platform';
import { CommandError } from '../command_error';
import { operatorName } from './terminal_activity';

const load = createRequire(__filename);

/** Runs in one transaction on the service's database. @throws StartupError where it can't be opened */
export function inDatabase<T>(run: (ctx: Context) => Promise<T>): Promise<T> {
  return withPlatform((platform) => {
    const { makeContext } = load('../platform/context') as typeof OfContext;
    const ctx = makeContext(platform, {
      request_id: mintRequestId(),
      address: 'operator',
      user_agent: 'operator',
      project_header: undefined,
    });
    return ctx.transact(run);
  });
}

/** Runs on the service's database without a transaction. @throws StartupError where it can't be opened */
export async function withPlatform<T>(run: (platform: OfPlatform.Platform) => Promise<T>): Promise<T> {
  // Not before: most of the time of a command goes into loading it.
  const { openPlatform } = load('../platform/platform') as typeof OfPlatform;
  const platform = await openPlatform(loadConfig(process.env), createLog('silent'));
  try {
    return await run(platform);
  } finally {
    await platform.close();
  }
}

/** The context acts as the operator in a project from here on. */
export function actAsOperator(ctx: Context, project: Omit<ProjectAccess, 'role'>): void {
  const now = new Date().toISOString();
  const of = { account_id: project.account_id, account_status: 'active' as const, user: null, created_at: now };
  ctx.identity = { ...OPERATOR, ...of, name: operatorName() };
  ctx.project = { ...project, role: 'owner' };
}

/** The user of an e-mail; the context acts as they from here on. @throws CommandError where there is none */
export async function actAs(ctx: Context, email: string): Promise<UserRow> {
  const user = await findUser(ctx, email);
  if (!user) throw new CommandError(`there is no user ${email}`);
  ctx.identity = identityOf(user);
  return user;
}

function identityOf({ id, name, email, account_id, account_status, created_at }: UserRow): Identity {
  return { ...OPERATOR, account_id, account_status, user: { id, name, email }, created_at };
}

const OPERATOR = {
  kind: 'session',
  id: 'operator',
  name: 'Operator',
  prefix: '',
  project_id: null,
  scopes: null,
  project_ids: null,
  may_destroy: true,
  paused_at: null,
  expires_at: null,
  last_used_at: null,
} as const;
