// Writes what was read as `platform.yaml`.
import { createRequire } from 'node:module';
import type * as OfYaml from 'yaml';
import { memoize } from '../../../core/memoize';
import type { Application, ImportRun } from './run';

const yaml = memoize(() => createRequire(__filename)('yaml') as typeof OfYaml);

export function writeImported(run: ImportRun): string {
  const volumes = new Map([...run.volumes].map(([name, fields]) => [name, without(fields, 'original')]));
  const applications = new Map([...run.applications].map(([name, one]) => [name, contentOf(one)]));
  const file = new Map<string, unknown>([
    ['databases', run.databases],
    ['buckets', run.buckets],
    ['volumes', volumes],
    ['applications', applications],
  ]);
  const content = filled(file);
  return content.size ? yaml().stringify(content, { lineWidth: 0, aliasDuplicateObjects: false }) : '{}\n';
}

function contentOf({ fields, settings, processes, variables, schedules, domains }: Application): Map<string, unknown> {
  return filled(
    new Map<string, unknown>([
      ...fields,
      ['settings', filled(settings)],
      ['processes', filled(processes)],
      ['variables', variables],
      ['schedules', schedules],
      ['domains', domains],
    ]),
  );
}

/** Without what is empty. */
function filled(map: ReadonlyMap<string, unknown>): Map<string, unknown> {
  return new Map([...map].filter(([, one]) => !(one instanceof Map) || one.size > 0));
}

function without(map: ReadonlyMap<string, unknown>, name: string): Map<string, unknown> {
  return new Map([...map].filter(([key]) => key !== name));
}
