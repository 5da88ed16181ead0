import { formats } from '../../core/formats/formats';
import { Project } from '../../models/projects/project';
import { named } from '../../db/statement';
import { UsageError, type Command } from './command';
import { actAs, inDatabase } from './open';
import { noteAtTerminal } from './terminal_activity';

const LIST = named(`select p.id, p.name, p.account_id, p.default_region, (select count(*)::int from members m
    where m.project_id = p.id) as members, p.created_at
  from projects p where p.deleted_at is null order by p.id`);

export const commands: Command[] = [
  {
    name: 'project create',
    summary: 'Create a project that a user owns.',
    options: {
      user: { value: 'e-mail', description: 'The owner.', required: true },
      name: { value: 'text', description: 'Name of the project.', required: true },
      region: { value: 'id', description: 'Region of resources that name none; default: the first one.' },
    },
    async run(input) {
      const label = formats.label(input.text('name') as string);
      if (!label) throw new UsageError('--name must have 1 to 100 characters');
      const { id, name, account_id, default_region } = await inDatabase(async (ctx) => {
        await actAs(ctx, input.text('user') as string);
        const project = await Project.create(ctx, { name: label.value, default_region: input.text('region') });
        const resource = { type: 'project', id: project.id, name: project.name };
        await noteAtTerminal(ctx.sql, { action: 'project.created', resource, project_id: project.id });
        return project;
      });
      return { rows: [{ id, name, account_id, default_region }] };
    },
  },
  {
    name: 'project list',
    summary: 'List the projects.',
    run: async () => ({ rows: await inDatabase((ctx) => ctx.sql.query<Record<string, unknown>>(LIST, [])) }),
  },
];
