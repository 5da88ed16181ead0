// Two-factor: TOTP (RFC 6238), each code once, and recovery codes for a lost authenticator.
import { randomBytes } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Context, Statement } from '../../core/context';
import { problem } from '../../core/errors';
import { limits } from '../../core/limits';
import { sha256 } from '../../core/accounts/tokens';
import { noteChange } from '../base/row';
import { named } from '../../db/statement';
import { currentUser, requirePassword, resetTwoFactor, wrongField, type UserRow } from './user';
import { sealedColumns } from '../base/sealed_columns';

const STEP_SECONDS = 30;
/** Steps that the clocks may differ by, each way (RFC 6238 section 5.2). */
const WINDOW = 1;
/** 160 bits, as RFC 4226 section 4 recommends. */
const SECRET_BYTES = 20;
/** 80 bits: enough for a plain hash. */
const RECOVERY_BYTES = 10;

// Five free attempts, then a wait that doubles from one minute to an hour: about 30 guesses a day of a million codes.
// Counted before the look, so that guesses at the same time can't slip through together. Browsers in which the person
// was logged in before are counted apart: whoever has the password alone does not lock them out.
const attemptStatement = (failures: string, retryAt: string): Statement =>
  named(`update users set ${failures} = ${failures} + 1,
    ${retryAt} = case when ${failures} >= 4 then now() + make_interval(mins => least(60,
      (2 ^ least(${failures} - 4, 6))::int)) end
  where id = $1 and coalesce(${retryAt}, '-infinity') <= now() returning id`);
const waitStatement = (retryAt: string): Statement =>
  named(`select ceil(extract(epoch from ${retryAt} - now()))::int as seconds from users where id = $1`);
const BY_STRANGERS = {
  attempt: attemptStatement('code_failures', 'code_retry_at'),
  wait: waitStatement('code_retry_at'),
};
const BY_KNOWN = {
  attempt: attemptStatement('known_code_failures', 'known_code_retry_at'),
  wait: waitStatement('known_code_retry_at'),
};
const FORGIVE = named(`update users set code_failures = 0, code_retry_at = null, known_code_failures = 0,
  known_code_retry_at = null where id = $1`);
const SPEND_STEP = named('update users set totp_last_step = $2 where id = $1 and totp_last_step < $2 returning id');
const SPEND_RECOVERY = named(
  'update recovery_codes set used_at = now() where user_id = $1 and hash = $2 and used_at is null returning user_id',
);
const ENROL = named(
  'update users set totp_secret = $2, totp_last_step = 0 where id = $1 and totp_confirmed_at is null returning id',
);
const CONFIRM = named(
  `update users set totp_confirmed_at = now(), totp_last_step = $2
    where id = $1 and totp_confirmed_at is null and totp_secret = $3 returning id`,
);
const LOCK = named('select 1 from users where id = $1 for update');
const DROP_RECOVERY = named('delete from recovery_codes where user_id = $1');
const ADD_RECOVERY = named('insert into recovery_codes (user_id, hash) select $1, unnest($2::text[])');
const LEFT = named('select count(*)::int as left from recovery_codes where user_id = $1 and used_at is null');

/**
 * For a login, outside of a transaction: a refusal must not undo the count.
 * @param isKnown the person was logged in in this browser before
 * @throws two_factor_required, rate_limited
 */
export async function requireSecondFactor(
  ctx: Context,
  user: UserRow,
  code: string | null,
  isKnown: boolean,
): Promise<void> {
  if (!user.totp_confirmed_at) return;
  if (!code) throw problem('two_factor_required');
  if (!(await spendCode(ctx, user, code, isKnown)))
    throw problem('two_factor_required', 'The two-factor code is wrong or was used before.');
}

/**
 * For a change of two-factor itself, outside of a transaction. @throws invalid_state while it is off, validation_failed
 * on `code`, rate_limited
 */
export async function requireCode(ctx: Context, code: string): Promise<void> {
  const user = await currentUser(ctx);
  if (!user.totp_confirmed_at)
    throw problem('invalid_state', 'Two-factor is off.', { resource_status: 'off', allowed_statuses: ['on'] });
  if (!(await spendCode(ctx, user, code, true))) throw wrongField('code', 'is wrong or was used before');
}

/** As requireCode, with the password. @throws the same, validation_failed on `password` */
export async function requirePasswordAndCode(ctx: Context, password: string, code: string): Promise<void> {
  await requirePassword(ctx, password);
  await requireCode(ctx, code);
}

/** A new secret, sealed; it counts once it is confirmed. @throws already_exists where two-factor is on */
export async function enrolTwoFactor(ctx: Context): Promise<{ secret: string; otpauth_url: string }> {
  const user = await currentUser(ctx);
  const totp = totpOf(ctx, user, new Secret({ size: SECRET_BYTES }));
  const sealed = ctx.secrets.seal(totp.secret.base32, sealedColumns.totpSecret.contextOf(user.id));
  const enrolled = await ctx.sql.query(ENROL, [user.id, sealed]);
  if (!enrolled.length) throw problem('already_exists', 'Two-factor is on. Disable it first.');
  noteChange(ctx, { type: 'user', id: user.id, name: user.name }, ['two_factor']);
  return { secret: totp.secret.base32, otpauth_url: totp.toString() };
}

/**
 * Turns two-factor on. @returns recovery codes @throws invalid_state without enrolment, validation_failed on `code`,
 * rate_limited
 */
export async function confirmTwoFactor(ctx: Context, code: string): Promise<string[]> {
  const user = await currentUser(ctx);
  if (!user.totp_secret || user.totp_confirmed_at) {
    const resource_status = user.totp_confirmed_at ? 'on' : 'off';
    throw problem('invalid_state', 'There is no enrolment to confirm.', {
      resource_status,
      allowed_statuses: ['enrolled'],
    });
  }
  await ctx.attempt(`two-factor confirmation ${user.id}`);
  const step = stepOf(ctx, user, code.replace(/\s/g, ''));
  const confirmed = step !== null && (await ctx.sql.query(CONFIRM, [user.id, step, user.totp_secret])).length > 0;
  if (!confirmed) throw wrongField('code', 'is wrong');
  noteChange(ctx, { type: 'user', id: user.id, name: user.name }, ['two_factor']);
  return writeRecoveryCodes(ctx, user.id);
}

/** Turns two-factor off; the codes were checked before. */
export async function disableTwoFactor(ctx: Context): Promise<void> {
  const user = await currentUser(ctx);
  await resetTwoFactor(ctx, user.id);
  noteChange(ctx, { type: 'user', id: user.id, name: user.name }, ['two_factor']);
}

/** Ten new recovery codes in place of the old ones; the code was checked before. */
export async function regenerateRecoveryCodes(ctx: Context): Promise<string[]> {
  const user = await currentUser(ctx);
  noteChange(ctx, { type: 'user', id: user.id, name: user.name }, ['recovery_codes']);
  return writeRecoveryCodes(ctx, user.id);
}

/** Recovery codes that can still be used. */
export async function recoveryCodesLeft(ctx: Context, userId: string): Promise<number> {
  const [row] = await ctx.sql.query<{ left: number }>(LEFT, [userId]);
  return row?.left ?? 0;
}

async function spendCode(ctx: Context, user: UserRow, code: string, isKnown: boolean): Promise<boolean> {
  const text = code.replace(/[\s-]/g, '').toLowerCase();
  const isStep = /^\d{6}$/.test(text);
  const counters = isKnown ? BY_KNOWN : BY_STRANGERS;
  // Nobody guesses a recovery code: it works while others use up the attempts.
  const isRecovery = !isStep && (await ctx.sql.query(SPEND_RECOVERY, [user.id, hashOf(user.id, text)])).length > 0;
  if (!isRecovery && !(await ctx.sql.query(counters.attempt, [user.id])).length)
    throw await tooMany(ctx, counters.wait, user.id);
  const spent = isRecovery || (isStep && (await spendStep(ctx, user, text)));
  if (spent) await ctx.sql.query(FORGIVE, [user.id]);
  return spent;
}

async function tooMany(ctx: Context, wait: Statement, userId: string): Promise<Error> {
  const [row] = await ctx.sql.query<{ seconds: number }>(wait, [userId]);
  return problem(
    'rate_limited',
    'Too many wrong two-factor codes. A recovery code still works.',
    {},
    { 'Retry-After': String(Math.max(1, row?.seconds ?? 1)) },
  );
}

/** A code holds for its step and all before it (RFC 6238 section 5.2: accepted at most once). */
async function spendStep(ctx: Context, user: UserRow, code: string): Promise<boolean> {
  const step = stepOf(ctx, user, code);
  return step !== null && (await ctx.sql.query(SPEND_STEP, [user.id, step])).length > 0;
}

/** The time step that a code belongs to, null for a wrong one. */
function stepOf(ctx: Context, user: UserRow, code: string): number | null {
  const timestamp = Date.now();
  const secret = Secret.fromBase32(
    ctx.secrets.open(user.totp_secret as string, sealedColumns.totpSecret.contextOf(user.id)),
  );
  const delta = totpOf(ctx, user, secret).validate({ token: code, timestamp, window: WINDOW });
  return delta === null ? null : Math.floor(timestamp / 1000 / STEP_SECONDS) + delta;
}

function totpOf(ctx: Context, user: UserRow, secret: Secret): TOTP {
  return new TOTP({
    issuer: new URL(ctx.config.baseUrl).hostname,
    label: user.email,
    algorithm: 'SHA1',
    digits: 6,
    period: STEP_SECONDS,
    secret,
  });
}

async function writeRecoveryCodes(ctx: Context, userId: string): Promise<string[]> {
  const codes = Array.from({ length: limits.recoveryCodesPerUser }, mintRecoveryCode);
  await ctx.sql.query(LOCK, [userId]);
  await ctx.sql.query(DROP_RECOVERY, [userId]);
  await ctx.sql.query(ADD_RECOVERY, [userId, codes.map((code) => hashOf(userId, code.replaceAll('-', '')))]);
  return codes;
}

/** Four groups of four characters: `k3f9-…`. */
function mintRecoveryCode(): string {
  const text = new Secret({ buffer: new Uint8Array(randomBytes(RECOVERY_BYTES)).buffer }).base32.toLowerCase();
  return (text.match(/.{4}/g) as string[]).join('-');
}

function hashOf(userId: string, code: string): string {
  return sha256(`${userId}:${code}`);
}
