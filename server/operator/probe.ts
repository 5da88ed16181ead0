import { loadConfig } from '../../core/config';
import { formats } from '../../core/formats/formats';
import { createProbe, listProbes, revokeProbe } from '../../models/observers/probe';
import { CommandError } from '../command_error';
import { UsageError, type Command, type Input, type Output } from './command';
import { inDatabase } from './open';
import { noteAtTerminal } from './terminal_activity';

export const commands: Command[] = [
  {
    name: 'probe create',
    summary: 'Create a key for a probe that checks observers from another region. It is shown once.',
    options: {
      region: { value: 'slug', description: 'Where the probe runs, as observers name it: eu-west.', required: true },
      name: { value: 'text', description: 'What the probe is called; default: its region.' },
    },
    run: create,
  },
  {
    name: 'probe list',
    summary: 'List the probes whose keys are not revoked, and when they last asked for checks.',
    run: async () => ({ rows: (await inDatabase((ctx) => listProbes(ctx.sql))).map((probe) => ({ ...probe })) }),
  },
  {
    name: 'probe revoke',
    summary: 'Revoke the key of a probe. Running services reject it at once.',
    argument: 'probe id',
    async run({ argument }) {
      await inDatabase(async (ctx) => {
        if (!(await revokeProbe(ctx.sql, argument))) throw new CommandError(`there is no probe ${argument}`);
        const resource = { type: 'probe', id: argument, name: null };
        await noteAtTerminal(ctx.sql, { action: 'probe.revoked', resource });
      });
      return { rows: [{ id: argument, revoked: true }] };
    },
  },
];

async function create(input: Input): Promise<Output> {
  const region = formats.slug(input.text('region') ?? '')?.value;
  if (region === undefined)
    throw new UsageError('--region must have 3 to 40 small letters, digits and hyphens, and begin with a letter');
  const { regionId } = loadConfig(process.env);
  if (region === regionId)
    throw new CommandError(`the workers of this installation check from ${regionId} (REGION_ID) themselves`);
  const name = formats.label(input.text('name') ?? region)?.value;
  if (name === undefined) throw new UsageError('--name must have 1 to 100 characters');
  const { probe, token } = await inDatabase(async (ctx) => {
    const made = await createProbe(ctx.sql, { region, name });
    await noteAtTerminal(ctx.sql, { action: 'probe.created', resource: { type: 'probe', id: made.probe.id, name } });
    return made;
  });
  return { rows: [{ ...probe }], secrets: { token } };
}
