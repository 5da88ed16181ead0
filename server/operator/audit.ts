// The activity of the whole installation, as lines for other programs.
import { once } from 'node:events';
import { isId } from '../../core/ids';
import { formats } from '../../core/formats/formats';
import { exportActivity } from '../platform/activity_export';
import { UsageError, type Command, type Input, type Output } from './command';
import { withPlatform } from './open';

const FORMATS = ['jsonl', 'csv'] as const;

export const commands: Command[] = [
  {
    name: 'audit',
    summary: 'Print what happened in all projects and in the installation itself, oldest first, to standard output.',
    options: {
      since: { value: 'time', description: 'From then on: 2026-11-28T00:00:00Z, or a number of days, 7d.' },
      until: { value: 'time', description: 'Up to then, in the same way. Default: now.' },
      person: { value: 'text', description: 'Id, or a part of the name or the e-mail address, of who did it.' },
      action: { value: 'action', description: 'project.created, or the beginning of some: installation.' },
      project: { value: 'id', description: 'Of this project only.' },
      format: { value: 'format', description: 'jsonl (an object a line; the default) or csv (for spreadsheets).' },
    },
    run: audit,
  },
];

async function audit(input: Input): Promise<Output> {
  const format = FORMATS.find((one) => one === (input.text('format') ?? 'jsonl'));
  if (format === undefined) throw new UsageError(`--format is ${FORMATS.join(' or ')}`);
  const project_id = input.text('project') ?? null;
  if (project_id !== null && !isId('prj', project_id)) throw new UsageError('--project is the id of a project');
  const [since, until] = [timeOf(input, 'since'), timeOf(input, 'until')];
  const filter = {
    since,
    until,
    project_id,
    person: input.text('person') ?? null,
    action: input.text('action') ?? null,
  };
  let isClosed = false;
  // `head` has read enough.
  process.stdout.on('error', () => (isClosed = true));
  await withPlatform(async ({ database }) => {
    for await (const text of exportActivity(database, { format, filter })) {
      if (isClosed) return;
      if (!process.stdout.write(text))
        await Promise.race([once(process.stdout, 'drain'), once(process.stdout, 'close')]);
    }
  });
  return { rows: [], isPrinted: true };
}

function timeOf(input: Input, option: string): string | null {
  const text = input.text(option);
  if (text === undefined) return null;
  const days = /^(\d{1,5})d$/.exec(text)?.[1];
  if (days) return new Date(Date.now() - Number(days) * 86_400_000).toISOString();
  const time = formats.timestamp(text);
  if (!time) throw new UsageError(`--${option} ${text} is neither a time nor a number of days`);
  return time.value;
}
