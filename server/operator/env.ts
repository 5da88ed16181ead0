import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Context, ProjectAccess } from '../../core/context';
import { Problem, type FieldError } from '../../core/errors';
import { recordActivity } from '../../models/projects/activity';
import { Application } from '../../models/applications/application';
import { setVariables, type VariableSetting } from '../../models/environment/environment_variable/batch';
import { named } from '../../db/statement';
import type * as OfResolvers from '../../resolvers';
import { CommandError } from '../command_error';
import { UsageError, type Command, type Input } from './command';
import { parseEnvFile } from './env_file';
import { actAsOperator, inDatabase } from './open';

const load = createRequire(__filename);

const PROJECT = named(`select p.id, p.name, p.account_id, p.default_region from projects p
  join applications a on a.project_id = p.id where a.id = $1 and a.deleted_at is null and p.deleted_at is null`);
const LIST = named(`select key, available_at, managed_by, updated_at from environment_variables
  where application_id = $1 order by key`);

export const commands: Command[] = [
  {
    name: 'env set',
    summary: 'Set environment variables of an application: all of them or none. They take effect at the next restart.',
    argument: 'application id',
    more: 'KEY=VALUE',
    options: { file: { value: 'path', description: 'File of KEY=VALUE lines (.env); - reads standard input.' } },
    async run(input) {
      const variables = variablesOf(input);
      const rows = await inDatabase(async (ctx) => {
        await selectProjectOf(ctx, input.argument);
        const set = await setVariables(ctx, await Application.held(ctx, input.argument), validated(input, variables));
        recordActivity(ctx, 'environment_variable.set');
        return set.map(({ key, available_at, updated_at }) => ({ key, available_at, updated_at }));
      });
      return { rows };
    },
  },
  {
    name: 'env list',
    summary: 'List the environment variables of an application, without their values.',
    argument: 'application id',
    run: async ({ argument }) => ({
      rows: await inDatabase(async (ctx) => {
        await selectProjectOf(ctx, argument);
        return ctx.sql.query<Record<string, unknown>>(LIST, [argument]);
      }),
    }),
  },
];

/** Variables of the file, then of the command line. @throws UsageError, which shows no value */
function variablesOf(input: Input): VariableSetting[] {
  const given = input.more.map((text, index) => {
    const at = text.indexOf('=');
    if (at < 1) throw new UsageError(`argument ${index + 1} behind the application is not KEY=VALUE`);
    return { key: text.slice(0, at), value: text.slice(at + 1) };
  });
  const file = input.text('file');
  const variables = [...(file === undefined ? [] : parseEnvFile(readText(file))), ...given];
  if (!variables.length) throw new UsageError('env set needs KEY=VALUE or a --file that has some');
  return variables;
}

function readText(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** @throws CommandError where there is no such application */
async function selectProjectOf(ctx: Context, application: string): Promise<void> {
  const [project] = await ctx.sql.query<Omit<ProjectAccess, 'role'>>(PROJECT, [application]);
  if (!project) throw new CommandError(`there is no application ${application}`);
  actAsOperator(ctx, project);
}

/** As the API validates them. @throws CommandError with all mistakes, by key */
function validated(input: Input, variables: VariableSetting[]): VariableSetting[] {
  const { buildCore } = load('../../resolvers') as typeof OfResolvers;
  const operation = buildCore().operations.get('setEnvironmentVariables');
  try {
    const args = operation?.validate({ id: input.argument, input: { variables } });
    return (args as { input: { variables: VariableSetting[] } }).input.variables;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const errors = error.members.errors as FieldError[];
    const name = (field: string): string => variables[Number(field.split('.')[1])]?.key ?? field;
    throw new CommandError(errors.map(({ field, detail }) => `${name(field)} ${detail}`).join('; '));
  }
}
