// Members of projects, and invitations to become one.
import type { Context, Identity, Role } from '../../core/context';
import { problem, validationFailed, type FieldError } from '../../core/errors';
import { mintId } from '../../core/ids';
import { limits } from '../../core/limits';
import { mintSecret, sha256 } from '../../core/accounts/tokens';
import type { AcceptInvitationInput, InviteMemberInput } from '../../schema/types';
import { invitationMail } from '../../core/mail/platform_mail';
import { queueMail } from '../base/mail_outbox';
import type { Page } from '../base/page';
import { newest, noteChange, type NewestArguments } from '../base/row';
import { projectAccess } from '../identity/identity';
import { requireRole } from '../identity/role';
import { startSession, viewer, type Viewer } from '../identity/session';
import { requireBelow } from '../base/quota';
import { requireSeniority } from './member/seniority';
import { named } from '../../db/statement';
import {
  createUser,
  findUser,
  hashNewPassword,
  normalEmail,
  requirePasswordLogin,
  sessionUser,
  wrongField,
} from '../identity/user';
import { addressBlock } from '../../core/protocols/addresses';
import { ADDRESS_TIMES } from '../identity/login_attempts';

interface MemberRow {
  user_id: string;
  name: string;
  email: string;
  role: Role;
  created_at: string;
}

interface InvitationRow {
  id: string;
  project_id: string;
  email: string;
  role: Role;
  invited_by: string;
  created_at: string;
  expires_at: string;
}

/** Days in which an invitation can be accepted. */
const INVITATION_DAYS = 7;

const MEMBERS = `select m.user_id, u.name, u.email, m.role, m.created_at from members m
  join users u on u.id = m.user_id where m.project_id = $1`;
const MEMBER = named(`${MEMBERS} and m.user_id = $2`);
const BY_EMAIL = named(`${MEMBERS} and u.email = $2`);
const LOCK_PROJECT = named('select 1 from projects where id = $1 for update');
const OWNERS = named(`select count(*)::int as count from members where project_id = $1 and role = 'owner'`);
const COUNT = named(
  `select (select count(*) from members where project_id = $1)::int + (select count(*) from invitations
    where project_id = $1 and expires_at > now())::int as used`,
);
const LIMIT = {
  max: limits.membersPerProject,
  resource: 'members',
  parent: 'The project',
  rows: 'members and invitations',
};
const JOIN = named('insert into members (project_id, user_id, role) values ($1, $2, $3)');
const SET_ROLE = named(`update members set role = $3,
    owner_since = case when role = 'owner' then owner_since else now() end
  where project_id = $1 and user_id = $2`);
const LEAVE = named('delete from members where project_id = $1 and user_id = $2');

const INVITATION = 'id, project_id, email, role, invited_by, created_at, expires_at';
const INVITATIONS = `select ${INVITATION} from invitations where project_id = $1 and expires_at > now()`;
const OPEN = named(`select ${INVITATION} from invitations where hash = $1 and expires_at > now()`);
const INVITE = named(
  `insert into invitations (id, project_id, email, role, hash, invited_by, expires_at)
    values ($1, $2, $3, $4, $5, $6, now() + make_interval(days => $7)) returning ${INVITATION}`,
);
const REPLACE = named('delete from invitations where project_id = $1 and email = $2');
const WITHDRAW = named('delete from invitations where project_id = $1 and id = $2 returning id');
const CONSUME_INVITATION = named(
  `delete from invitations where hash = $1 and expires_at > now() returning ${INVITATION}`,
);

/** One page of members, those who came last to the platform first. @throws project_not_found */
export async function listMembers(ctx: Context, projectId: string, args: NewestArguments): Promise<Page<MemberRow>> {
  await requireRole(ctx, projectId, 'viewer');
  return newest<MemberRow>(ctx, args, {
    text: MEMBERS,
    values: [projectId],
    id: 'm.user_id',
    idOf: (row) => row.user_id,
  });
}

/** One page of invitations that can still be accepted. @throws project_not_found, role_not_permitted */
export async function listInvitations(
  ctx: Context,
  projectId: string,
  args: NewestArguments,
): Promise<Page<InvitationRow>> {
  await requireRole(ctx, projectId, 'owner');
  return newest<InvitationRow>(ctx, args, { text: INVITATIONS, values: [projectId], id: 'id', idOf: (row) => row.id });
}

/**
 * Invites by a token, existing users too: e-mail addresses of users are not verified, so an address alone must not
 * grant access to a project.
 * @throws project_not_found, role_not_permitted, already_exists, quota_exceeded
 */
export async function inviteMember(
  ctx: Context,
  projectId: string,
  input: InviteMemberInput,
): Promise<{ invitation: InvitationRow; token: string }> {
  await ctx.sql.query(LOCK_PROJECT, [projectId]);
  await requireRole(ctx, projectId, 'owner');
  const email = normalEmail(input.email);
  const [member] = await ctx.sql.query<MemberRow>(BY_EMAIL, [projectId, email]);
  if (member) throw problem('already_exists', 'The person is a member.', { resource_id: member.user_id });
  await ctx.sql.query(REPLACE, [projectId, email]);
  await requireBelow(ctx, COUNT, projectId, LIMIT);
  const token = mintSecret('inv_');
  const id = mintId('inv');
  const [invitation] = await ctx.sql.query<InvitationRow>(INVITE, [
    id,
    projectId,
    email,
    input.role,
    sha256(token),
    sessionUser(ctx).id,
    INVITATION_DAYS,
  ]);
  await queueMail(
    ctx,
    [email],
    invitationMail({
      project: ctx.project?.name ?? '',
      inviter: sessionUser(ctx).name,
      role: input.role,
      token,
      days: INVITATION_DAYS,
      baseUrl: ctx.config.baseUrl,
    }),
  );
  noteChange(ctx, { type: 'invitation', id, name: null }, ['email', 'role']);
  return { invitation: invitation as InvitationRow, token };
}

/** @throws project_not_found, role_not_permitted, not_found */
export async function revokeInvitation(ctx: Context, projectId: string, id: string): Promise<void> {
  await requireRole(ctx, projectId, 'owner');
  const withdrawn = await ctx.sql.query(WITHDRAW, [projectId, id]);
  if (!withdrawn.length) throw problem('not_found', 'There is no such invitation.');
  noteChange(ctx, { type: 'invitation', id, name: null });
}

/**
 * Preparation outside the transaction: checks that the invitation is open, and hashes the password of a new user.
 * @returns null for a request with a session
 * @throws not_found, session_required (the e-mail has a user, who must log in first), validation_failed,
 * account_suspended, rate_limited, engine_unavailable
 */
export async function prepareAcceptance(ctx: Context, input: AcceptInvitationInput): Promise<string | null> {
  await ctx.attempt(`invitation ${addressBlock(ctx.address)}`, ADDRESS_TIMES);
  const [invitation] = await ctx.sql.query<InvitationRow>(OPEN, [sha256(input.token)]);
  if (!invitation) throw noInvitation();
  if (ctx.identity) return signedInMatches(ctx.identity, invitation);
  if (await findUser(ctx, invitation.email))
    throw problem('session_required', 'A user with this e-mail exists. Log in, then accept.');
  requirePasswordLogin(ctx);
  requireNewUser(input);
  return hashNewPassword(input.password as string, 'password', { email: invitation.email, name: input.name as string });
}

/**
 * Joins the project, once per invitation; without a session it creates the user and logs in. @throws not_found,
 * already_exists
 */
export async function acceptInvitation(
  ctx: Context,
  input: AcceptInvitationInput,
  password_hash: string | null,
): Promise<Viewer> {
  const [invitation] = await ctx.sql.query<InvitationRow>(CONSUME_INVITATION, [sha256(input.token)]);
  if (!invitation) throw noInvitation();
  const { email, project_id, role } = invitation;
  const answer = ctx.identity
    ? await viewer(ctx)
    : await startSession(ctx, await createUser(ctx, { email, name: input.name as string, password_hash }));
  const { id, name } = sessionUser(ctx);
  await ctx.sql.query(JOIN, [project_id, id, role]);
  ctx.project = await projectAccess(ctx.sql, ctx.identity as Identity, project_id);
  if (!ctx.project) throw noInvitation();
  await ctx.forget({ user_id: id });
  noteChange(ctx, { type: 'member', id, name }, ['role']);
  return answer;
}

/** @throws project_not_found, role_not_permitted, not_found, resource_protected for the last owner */
export async function changeMemberRole(
  ctx: Context,
  projectId: string,
  userId: string,
  role: Role,
): Promise<MemberRow> {
  await ctx.sql.query(LOCK_PROJECT, [projectId]);
  await requireRole(ctx, projectId, 'owner');
  const member = await memberOf(ctx, projectId, userId);
  if (role !== 'owner') await requireAnotherOwner(ctx, projectId, member);
  await ctx.sql.query(SET_ROLE, [projectId, userId, role]);
  await ctx.forget({ user_id: userId });
  noteChange(ctx, { type: 'member', id: userId, name: member.name }, ['role']);
  return { ...member, role };
}

/** @throws project_not_found, role_not_permitted, not_found, resource_protected for the last owner */
export async function removeMember(ctx: Context, projectId: string, userId: string): Promise<void> {
  await ctx.sql.query(LOCK_PROJECT, [projectId]);
  await requireRole(ctx, projectId, userId === sessionUser(ctx).id ? 'viewer' : 'owner');
  const member = await memberOf(ctx, projectId, userId);
  await requireAnotherOwner(ctx, projectId, member);
  await ctx.sql.query(LEAVE, [projectId, userId]);
  await ctx.forget({ user_id: userId });
  noteChange(ctx, { type: 'member', id: userId, name: member.name });
}

async function memberOf(ctx: Context, projectId: string, userId: string): Promise<MemberRow> {
  const [member] = await ctx.sql.query<MemberRow>(MEMBER, [projectId, userId]);
  if (!member) throw problem('not_found', 'The project has no such member.');
  return member;
}

async function requireAnotherOwner(ctx: Context, projectId: string, member: MemberRow): Promise<void> {
  if (member.role !== 'owner') return;
  const [owners] = await ctx.sql.query<{ count: number }>(OWNERS, [projectId]);
  if ((owners?.count ?? 0) < 2)
    throw problem('resource_protected', 'A project keeps at least one owner. Make somebody else owner first.');
  await requireSeniority(ctx.sql, projectId, sessionUser(ctx).id, member.user_id);
}

function signedInMatches(identity: Identity, invitation: InvitationRow): null {
  if (identity.account_status === 'suspended') throw problem('account_suspended');
  if (identity.user?.email !== invitation.email)
    throw wrongField('token', 'is an invitation for another e-mail address');
  return null;
}

function requireNewUser(input: AcceptInvitationInput): void {
  const missing = (['name', 'password'] as const).filter((field) => input[field] == null);
  const errors = missing.map((field): FieldError => ({
    field,
    code: 'required',
    detail: 'is required for a new user',
  }));
  if (errors.length) throw validationFailed(errors);
}

function noInvitation(): Error {
  return problem('not_found', 'The invitation does not exist, was withdrawn, or has expired.');
}
