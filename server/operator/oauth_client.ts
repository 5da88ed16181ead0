import { formats } from '../../core/formats/formats';
import { isRedirectUri } from '../../core/accounts/oauth';
import { createOauthClient, deleteOauthClient, listOauthClients } from '../../models/identity/oauth/client';
import { CommandError } from '../command_error';
import { UsageError, type Command, type Input, type Output } from './command';
import { inDatabase } from './open';
import { noteAtTerminal } from './terminal_activity';

export const commands: Command[] = [
  {
    name: 'oauth-client create',
    summary: 'Register a program (OAuth client) that users can give access. It has no secret.',
    options: {
      name: { value: 'text', description: 'Name of the program on the consent page.', required: true },
      redirect: {
        value: 'addresses',
        description: 'Comma-separated redirect URIs: https, http on 127.0.0.1, or com.example.app:/path.',
        required: true,
      },
    },
    run: create,
  },
  {
    name: 'oauth-client list',
    summary: 'List the registered programs.',
    run: async () => ({ rows: (await inDatabase((ctx) => listOauthClients(ctx))).map((client) => ({ ...client })) }),
  },
  {
    name: 'oauth-client delete',
    summary: 'Delete a program, and revoke all access that users have given it.',
    argument: 'client id',
    async run({ argument }) {
      await inDatabase(async (ctx) => {
        if (!(await deleteOauthClient(ctx, argument))) throw new CommandError(`there is no client ${argument}`);
        const resource = { type: 'oauth_client', id: argument, name: null };
        await noteAtTerminal(ctx.sql, { action: 'oauth_client.deleted', resource });
      });
      return { rows: [{ client_id: argument, deleted: true }] };
    },
  },
];

async function create(input: Input): Promise<Output> {
  const name = formats.label(input.text('name') ?? '')?.value;
  if (name === undefined) throw new UsageError('--name must have 1 to 100 characters');
  const uris = (input.text('redirect') ?? '').split(',').map((uri) => uri.trim());
  const wrong = uris.find((uri) => !isRedirectUri(uri));
  if (wrong !== undefined)
    throw new UsageError(`--redirect ${wrong} is neither https, nor http on 127.0.0.1, nor a scheme with a dot`);
  if (uris.some((uri) => uri.startsWith('https:')) && !uris.every((uri) => uri.startsWith('https:')))
    throw new UsageError('--redirect has either addresses of a website or of a program on a computer');
  const client = await inDatabase(async (ctx) => {
    const made = await createOauthClient(ctx, { client_name: name, redirect_uris: uris });
    const resource = { type: 'oauth_client', id: made.client_id, name };
    await noteAtTerminal(ctx.sql, { action: 'oauth_client.created', resource });
    return made;
  });
  return { rows: [{ ...client }] };
}
