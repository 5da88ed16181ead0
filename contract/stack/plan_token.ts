// What a plan was made of, sealed for who made it: nothing of it is kept here, and nobody else can read or use it.
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import type { Context, Identity, ProjectAccess } from '../../core/context';
import { validationFailed } from '../../core/errors';

export interface PlanToken {
  /** Digest of the file. */
  document: string;
  environment: string | null;
  prune: boolean;
  /** Digests of what the plan has read, by place. */
  world: Record<string, string>;
  /** Digest of the changes. */
  changes: string;
  /** What is deleted with its data: `database:main`. */
  confirm: string[];
  /** The calls that destroy. */
  destroys: string[];
  /** Milliseconds since 1970. */
  expires: number;
}

const INFLATED_BYTES_MAX = 4 * 1024 * 1024;

export function sealPlanToken(ctx: Context, token: PlanToken): string {
  const packed = deflateRawSync(JSON.stringify(token)).toString('base64url');
  return ctx.secrets.seal(packed, holderOf(ctx));
}

/** @throws validation_failed for a token of another caller, of another project, or that has expired */
export function openPlanToken(ctx: Context, text: string): PlanToken {
  const token = unpack(ctx, text);
  if (!token) throw wrongToken('is none that a plan of this project has given to this caller');
  if (token.expires <= Date.now()) throw wrongToken('has expired: plan again');
  return token;
}

function unpack(ctx: Context, text: string): PlanToken | null {
  try {
    const packed = Buffer.from(ctx.secrets.open(text, holderOf(ctx)), 'base64url');
    return JSON.parse(inflateRawSync(packed, { maxOutputLength: INFLATED_BYTES_MAX }).toString()) as PlanToken;
  } catch {
    return null;
  }
}

/** A person may log in once more before they apply a plan. */
function holderOf(ctx: Context): string {
  const { kind, id, user } = ctx.identity as Identity;
  const caller = kind === 'session' ? (user?.id ?? id) : id;
  return `stack_plan\0${(ctx.project as ProjectAccess).id}\0${caller}`;
}

function wrongToken(detail: string): Error {
  return validationFailed([{ field: 'plan_token', code: 'invalid_format', detail }]);
}
