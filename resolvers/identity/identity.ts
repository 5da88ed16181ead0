import type { Context, Identity } from '../../core/context';
import { errors, problem, type ErrorCode } from '../../core/errors';
import { listing } from '../../models/base/listing';
import { reachableProjects } from '../../models/projects/reachable_projects';
import { projectAccess } from '../../models/identity/identity';
import type { Error as ErrorRow, Me } from '../../schema/types';
import type { Resolvers } from '../types';

export const resolvers: Resolvers = {
  Query: {
    getMe: (_, __, ctx) => describe(ctx, ctx.identity as Identity),
    listMyProjects: (_, args, ctx) => reachableProjects(ctx, args),
    listErrors: (_, args, ctx) => {
      const rows = catalog.filter((row) => args.status == null || row.status === args.status);
      return listing(ctx, rows, args, { key: 'code', filters: { of: 'errors', status: args.status } });
    },
    getError: (_, { code }) => catalog.find((row) => row.code === code) ?? throwUnknownCode(),
  },
};

const catalog: ErrorRow[] = (Object.keys(errors) as ErrorCode[]).map((code) => {
  const { status, title, meaning, remedy, retryable } = errors[code];
  return { code, status, title, description: `${meaning} ${remedy}`, retryable };
});

function throwUnknownCode(): never {
  throw problem('not_found', 'There is no such error code.');
}

async function describe(ctx: Context, identity: Identity): Promise<Me> {
  const { id, kind, name, prefix, scopes, project_ids, may_destroy, paused_at, user } = identity;
  const { created_at, expires_at, last_used_at } = identity;
  if (kind === 'session') throw problem('token_missing', 'getMe describes an API key.');
  const project = identity.project_id ? await projectAccess(ctx.sql, identity, identity.project_id) : null;
  return {
    token: {
      ...{ id, kind, name, prefix, scopes, project_ids, may_destroy, paused_at },
      ...{ created_at, expires_at, last_used_at },
    },
    user,
    project: project && { id: project.id, name: project.name },
  };
}
