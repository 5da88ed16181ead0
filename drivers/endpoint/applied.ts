// Digests of the configuration of a running program: the difference decides whether a reload is sufficient.
import { createHash } from 'node:crypto';
import type { ListenerSpec } from '../endpoint';
import type { ListenerProgram } from './program';

export interface Applied {
  startup: string;
  reloadable: string;
  rights: string[];
}

export function appliedOf<S extends ListenerSpec>(program: ListenerProgram<S>, spec: S): Applied {
  const fixed = [program.startup(spec), spec.tenant, spec.port, program.size];
  return {
    startup: digestOf(fixed),
    reloadable: digestOf(program.reloadable(spec)),
    rights: program.rights(spec).map(digestOf).sort(),
  };
}

function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex');
}
