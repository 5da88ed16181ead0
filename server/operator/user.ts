import type { Context } from '../../core/context';
import { formats } from '../../core/formats/formats';
import { hashPassword } from '../../core/accounts/passwords';
import { awaitLink } from '../../models/identity/login/linked_login';
import { grantOperator, isOperator, revokeOperator } from '../../models/identity/operator';
import { createUser, findUser, resetTwoFactor, setPassword } from '../../models/identity/user';
import { named } from '../../db/statement';
import { CommandError } from '../command_error';
import { UsageError, type Command } from './command';
import { actAs, inDatabase } from './open';
import { choosePassword, passwordOption } from './password';
import { noteAtTerminal } from './terminal_activity';

const LIST = named(`select u.id, u.email, u.name, u.account_id, a.status, u.password_hash is not null as password,
    u.totp_confirmed_at is not null as two_factor, u.is_operator as operator, u.created_at
  from users u join accounts a on a.id = u.account_id order by u.id`);

const email = { email: { value: 'address', description: 'E-mail of the user.', required: true } } as const;

export const commands: Command[] = [
  {
    name: 'user create',
    summary: 'Create a user with an account of their own.',
    options: {
      ...email,
      name: { value: 'text', description: 'Name of the user; default: the e-mail.' },
      ...passwordOption,
    },
    async run(input) {
      const address = emailOf(input.text('email'));
      const name = nameOf(input.text('name') ?? address);
      const { password, made } = await choosePassword(input, [address, name]);
      const password_hash = await hashPassword(password);
      const { id, account_id } = await inDatabase(async (ctx) => {
        if (await findUser(ctx, address)) throw new CommandError(`there is a user ${address} already`);
        const user = await createUser(ctx, { email: address, name, password_hash });
        await noteUser(ctx, 'user.created', { id: user.id, name });
        return user;
      });
      return { rows: [{ id, email: address.toLowerCase(), name, account_id }], secrets: { ...made } };
    },
  },
  {
    name: 'user list',
    summary: 'List the users.',
    run: async () => ({ rows: await inDatabase((ctx) => ctx.sql.query<Record<string, unknown>>(LIST, [])) }),
  },
  {
    name: 'user password',
    summary: 'Set a new password and end all sessions of the user.',
    options: { ...email, ...passwordOption },
    async run(input) {
      const { password, made } = await choosePassword(input, [input.text('email') as string]);
      const hash = await hashPassword(password);
      const { id, email: address } = await inDatabase(async (ctx) => {
        const user = await actAs(ctx, input.text('email') as string);
        await setPassword(ctx, user.id, hash);
        await noteUser(ctx, 'user.password_changed', user);
        return user;
      });
      return { rows: [{ id, email: address }], secrets: { ...made } };
    },
  },
  {
    name: 'user link-by-email',
    summary: 'Link the next login at a provider with the verified e-mail address of the user, within a week.',
    options: email,
    async run(input) {
      const { id, email: address } = await inDatabase(async (ctx) => {
        const user = await actAs(ctx, input.text('email') as string);
        await awaitLink(ctx, user.id);
        await noteUser(ctx, 'user.login_awaited', user);
        return user;
      });
      return { rows: [{ id, email: address }] };
    },
  },
  {
    name: 'user reset-two-factor',
    summary: 'Turn two-factor off for a user who lost authenticator and recovery codes.',
    options: email,
    async run(input) {
      const { id, email: address } = await inDatabase(async (ctx) => {
        const user = await actAs(ctx, input.text('email') as string);
        await resetTwoFactor(ctx, user.id);
        await noteUser(ctx, 'two_factor.disabled', user);
        return user;
      });
      return { rows: [{ id, email: address, two_factor: false }] };
    },
  },
  {
    name: 'user grant-operator',
    summary: 'Make the user an operator of the installation, who sees and changes it in the dashboard.',
    options: email,
    async run(input) {
      const { id, email: address } = await inDatabase(async (ctx) => {
        const user = await actAs(ctx, input.text('email') as string);
        await grantOperator(ctx, user.id);
        await noteUser(ctx, 'user.operator_granted', user);
        return user;
      });
      return { rows: [{ id, email: address, operator: true }] };
    },
  },
  {
    name: 'user revoke-operator',
    summary: 'Let the user be no operator of the installation any more. One operator stays.',
    options: email,
    async run(input) {
      const { id, email: address } = await inDatabase(async (ctx) => {
        const user = await actAs(ctx, input.text('email') as string);
        if (!(await isOperator(ctx.sql, user.id))) throw new CommandError(`${user.email} is no operator`);
        if (!(await revokeOperator(ctx, user.id)))
          throw new CommandError(`${user.email} is the only operator: make somebody else one first`);
        await noteUser(ctx, 'user.operator_revoked', user);
        return user;
      });
      return { rows: [{ id, email: address, operator: false }] };
    },
  },
];

function noteUser(ctx: Context, action: string, { id, name }: { id: string; name: string }): Promise<void> {
  return noteAtTerminal(ctx.sql, { action, resource: { type: 'user', id, name } });
}

function emailOf(text: string | undefined): string {
  const address = formats.email(text ?? '');
  if (!address) throw new UsageError(`--email ${text} is not an e-mail address`);
  return address.value;
}

function nameOf(text: string): string {
  const name = formats.label(text);
  if (!name) throw new UsageError('--name must have 1 to 100 characters');
  return name.value;
}
