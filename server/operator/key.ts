import type { Context } from '../../core/context';
import { formats } from '../../core/formats/formats';
import { scopes as knownScopes } from '../../core/accounts/scopes';
import * as keys from '../../models/identity/api_key';
import { named } from '../../db/statement';
import { CommandError } from '../command_error';
import { UsageError, type Command, type Input, type Output } from './command';
import { actAs, inDatabase } from './open';
import { noteAtTerminal } from './terminal_activity';

const LIST = named(`select k.id, k.kind, k.name, k.prefix, u.email as user, k.project_id as project, k.scopes,
    k.project_ids as projects, k.may_destroy, k.paused_at, k.created_at, k.expires_at, k.last_used_at
  from api_keys k left join users u on u.id = k.user_id where k.revoked_at is null
    and ($1::text is null or u.email = lower($1)) and ($2::text is null or k.project_id = $2) order by k.id`);
const KEY = named('select name, project_id from api_keys where id = $1');
const PROJECT = named('select id from projects where id = $1 and deleted_at is null');

export const commands: Command[] = [
  {
    name: 'key create',
    summary: 'Create a key of a user (--user) or of a project (--project). It is shown once.',
    options: {
      user: { value: 'e-mail', description: 'The key acts as this user.' },
      project: { value: 'id', description: 'The key acts as this project.' },
      name: { value: 'text', description: 'Name of the key; default: Operator.' },
      scopes: {
        value: 'list',
        description: `With --user: comma-separated list of ${Object.keys(knownScopes).join(', ')}; default: all.`,
      },
      projects: { value: 'ids', description: 'With --user: comma-separated list of projects to restrict the key to.' },
      expires: {
        value: 'time',
        description: 'With --user: end of the key, as 2030-01-31T00:00:00Z or a number of days, 90d.',
      },
      'no-delete': { value: null, description: 'The key may not delete, or overwrite what cannot be made again.' },
    },
    run: create,
  },
  {
    name: 'key list',
    summary: 'List the keys that are not revoked.',
    options: {
      user: { value: 'e-mail', description: 'Keys of this user only.' },
      project: { value: 'id', description: 'Keys of this project only.' },
    },
    run: async (input) => ({
      rows: await inDatabase((ctx) =>
        ctx.sql.query<Record<string, unknown>>(LIST, [input.text('user') ?? null, input.text('project') ?? null]),
      ),
    }),
  },
  {
    name: 'key revoke',
    summary: 'Revoke a key. Running services reject it at once.',
    argument: 'key id',
    async run({ argument }) {
      await inDatabase(async (ctx) => {
        const [key] = await ctx.sql.query<{ name: string; project_id: string | null }>(KEY, [argument]);
        if (!key || !(await keys.revokeAnyKey(ctx, argument))) throw new CommandError(`there is no key ${argument}`);
        const resource = { type: 'api_key', id: argument, name: key.name };
        await noteAtTerminal(ctx.sql, { action: 'api_key.revoked', resource, project_id: key.project_id });
      });
      return { rows: [{ id: argument, revoked: true }] };
    },
  },
];

async function create(input: Input): Promise<Output> {
  const [user, project] = [input.text('user'), input.text('project')];
  if ((user === undefined) === (project === undefined))
    throw new UsageError('key create needs either --user or --project');
  const { key, token } =
    user === undefined ? await createForProject(input, project as string) : await createForUser(input, user);
  const { id, kind, name, prefix, scopes, project_id, project_ids, may_destroy, expires_at } = key;
  const row = { id, kind, name, prefix, scopes, project_id, project_ids, may_destroy, expires_at };
  return { rows: [row], secrets: { token } };
}

function createForProject(input: Input, project: string): Promise<keys.CreatedKey> {
  for (const option of ['scopes', 'projects', 'expires'])
    if (input.text(option) !== undefined) throw new UsageError(`--${option} is for keys of users`);
  return inDatabase(async (ctx) => {
    if (!(await ctx.sql.query(PROJECT, [project])).length) throw new CommandError(`there is no project ${project}`);
    return noted(ctx, await keys.mintProjectKey(ctx, project, { name: nameOf(input), may_destroy: mayDestroy(input) }));
  });
}

function createForUser(input: Input, email: string): Promise<keys.CreatedKey> {
  const scopes = listOf(input.text('scopes')) ?? Object.keys(knownScopes);
  const values = {
    name: nameOf(input),
    scopes,
    project_ids: listOf(input.text('projects')),
    may_destroy: mayDestroy(input),
    expires_at: endOf(input.text('expires')),
  };
  return inDatabase(async (ctx) => {
    await actAs(ctx, email);
    return noted(ctx, await keys.createPersonalKey(ctx, values));
  });
}

async function noted(ctx: Context, created: keys.CreatedKey): Promise<keys.CreatedKey> {
  const { id, name, project_id } = created.key;
  await noteAtTerminal(ctx.sql, { action: 'api_key.created', resource: { type: 'api_key', id, name }, project_id });
  return created;
}

const mayDestroy = (input: Input): boolean => !input.has('no-delete');

function nameOf(input: Input): string {
  const name = formats.label(input.text('name') ?? 'Operator');
  if (!name) throw new UsageError('--name must have 1 to 100 characters');
  return name.value;
}

function listOf(text: string | undefined): string[] | null {
  if (text === undefined) return null;
  const names = [
    ...new Set(
      text
        .split(',')
        .map((word) => word.trim())
        .filter(Boolean),
    ),
  ];
  if (!names.length) throw new UsageError('a list must not be empty');
  return names;
}

function endOf(text: string | undefined): string | null {
  if (text === undefined) return null;
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  if (days) return new Date(Date.now() + Number(days) * 86_400_000).toISOString();
  const time = formats.timestamp(text);
  if (!time) throw new UsageError(`--expires ${text} is neither a time nor a number of days`);
  return time.value;
}
