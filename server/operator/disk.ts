// What uses the disk, as it was measured last: nothing is measured while the command runs.
import { gibibytesText } from '../../core/sentence';
import type { DiskUse } from '../../core/catalog/installation_reports';
import { loadReports } from '../../models/base/installation_report';
import type { Command } from './command';
import { inDatabase } from './open';

export const commands: Command[] = [
  {
    name: 'disk',
    summary: 'Show what uses the disk, by kind or by project, as the service measured it last.',
    options: { projects: { value: null, description: 'The projects that use most, instead of the kinds.' } },
    async run(input) {
      const reports = await inDatabase((ctx) => loadReports<DiskUse>(ctx.sql, 'disk use'));
      return { rows: reports.flatMap((report) => rowsOf(report, input.has('projects'))) };
    },
  },
];

function rowsOf(
  { machine, facts }: { machine: string; facts: DiskUse },
  isByProject: boolean,
): Record<string, unknown>[] {
  const measured_at = facts.started_at;
  if (isByProject)
    return facts.projects.map(({ id, name, bytes }) => ({
      ...{ machine, project: id, name, bytes, size: gibibytesText(bytes), measured_at },
    }));
  return [...facts.kinds]
    .sort((one, other) => other.bytes - one.bytes)
    .map(({ kind, bytes, problem }) => ({ machine, kind, bytes, size: gibibytesText(bytes), problem, measured_at }));
}
